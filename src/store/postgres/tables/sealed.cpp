#include "store/postgres/tables/sealed.h"

#include "core/checksum.h"

namespace hapax::postgres {

namespace {

constexpr std::size_t kSealBytes = 4;

struct Opened {
  std::string_view payload;
  std::uint32_t checksum = 0;
};

// What is too short for a seal has a checksum that its payload does not match.
Opened open(std::string_view stored) {
  if (stored.size() < kSealBytes) return {"", ~crc32c("")};
  Opened opened{stored.substr(kSealBytes)};
  for (const char byte : stored.substr(0, kSealBytes)) {
    opened.checksum = opened.checksum << 8 | static_cast<std::uint8_t>(byte);
  }
  return opened;
}

std::uint32_t checksum_of_message(const AttemptError& error) { return Checksum().add(error).value(); }

}  // namespace

std::string seal(std::string_view payload, std::uint32_t checksum, bool damaged) {
  checksum = checksum_to_store(checksum, damaged);
  std::string out;
  out.reserve(kSealBytes + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(checksum >> shift));
  return out.append(payload);
}

std::optional<std::string> seal_json(const std::optional<std::string>& json, bool damaged) {
  return json ? std::optional(seal(*json, crc32c(*json), damaged)) : std::nullopt;
}

std::string seal_input(const Execution& execution, std::string_view parent_workflow_id) {
  return seal(execution.input, checksum_of_facts(execution, parent_workflow_id));
}

std::string seal_message(const AttemptError& error, bool damaged) {
  return seal(error.message, checksum_of_message(error), damaged);
}

std::string seal_list(std::string_view packed, bool damaged) { return seal(packed, crc32c(packed), damaged); }

std::optional<std::string> unseal_json(std::optional<std::string_view> stored, bool& damaged) {
  if (!stored) return std::nullopt;
  return std::string(unseal_list(*stored, damaged));
}

void unseal_message(AttemptError& error, std::string_view stored, bool& damaged) {
  const Opened opened = open(stored);
  error.message = opened.payload;
  if (checksum_of_message(error) != opened.checksum) damaged = true;
}

std::string_view unseal_list(std::string_view stored, bool& damaged) {
  const Opened opened = open(stored);
  if (crc32c(opened.payload) != opened.checksum) damaged = true;
  return opened.payload;
}

void unseal_input(Execution& execution, std::string_view stored) {
  execution.input.clear();
  if (stored.empty()) return;
  const Opened opened = open(stored);
  execution.input = opened.payload;
  if (checksum_of_facts(execution) != opened.checksum) execution.damaged = true;
}

}  // namespace hapax::postgres
