#include "store/postgres/sealed.h"

#include "core/checksum.h"
#include "core/json.h"

namespace hapax::postgres {

namespace {

constexpr char kMark = '\0';              // begins no JSON text
constexpr char kMarkOfAttempts = '\xff';  // the number of an attempt is not negative
constexpr std::size_t kSealBytes = 5;

struct Opened {
  std::string_view payload;
  std::optional<std::uint32_t> checksum;  // absent: of an earlier version
};

std::string behind(char mark, std::uint32_t checksum, std::string_view payload) {
  std::string out;
  out.reserve(kSealBytes + payload.size());
  out.push_back(mark);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(checksum >> shift));
  out.append(payload);
  return out;
}

Opened open(char mark, std::string_view stored) {
  if (stored.size() < kSealBytes || stored.front() != mark) return {stored, std::nullopt};
  std::uint32_t checksum = 0;
  for (const char byte : stored.substr(1, kSealBytes - 1)) checksum = checksum << 8 | static_cast<std::uint8_t>(byte);
  return {stored.substr(kSealBytes), checksum};
}

// A changed mark looks like the data of an earlier version.
bool is_json(std::string_view text) {
  try {
    parse_json(text);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::uint32_t checksum_of_message(std::string_view type, std::string_view message) {
  return Checksum().add(type).add(message).value();
}

}  // namespace

std::string seal(std::string_view payload, std::uint32_t checksum, bool damaged) {
  return behind(kMark, checksum_to_store(checksum, damaged), payload);
}

std::optional<std::string> seal_json(const std::optional<std::string>& json, bool damaged) {
  return json ? std::optional(seal(*json, crc32c(*json), damaged)) : std::nullopt;
}

std::string seal_input(const Execution& execution, std::string_view parent_workflow_id) {
  return seal(execution.input, checksum_of_facts(execution, parent_workflow_id));
}

std::string seal_message(const AttemptError& error, bool damaged) {
  return seal(error.message, checksum_of_message(error.type, error.message), damaged);
}

std::optional<std::string> unseal_json(std::optional<std::string_view> stored, bool& damaged) {
  if (!stored) return std::nullopt;
  const Opened opened = open(kMark, *stored);
  const bool matches = opened.checksum ? crc32c(opened.payload) == *opened.checksum : is_json(opened.payload);
  if (!matches) damaged = true;
  return std::string(opened.payload);
}

std::string unseal_message(const std::string& type, std::string_view stored, bool& damaged) {
  const Opened opened = open(kMark, stored);
  if (opened.checksum && checksum_of_message(type, opened.payload) != *opened.checksum) damaged = true;
  return std::string(opened.payload);
}

void unseal_input(Execution& execution, std::string_view stored) {
  const Opened opened = open(kMark, stored);
  execution.input = opened.payload;
  if (execution.input.empty() && !opened.checksum) return;  // it was not asked for
  const bool matches = opened.checksum ? checksum_of_facts(execution) == *opened.checksum
                                       : sha256(execution.input) == execution.input_hash.bytes;
  if (!matches) execution.damaged = true;
}

std::string seal_attempts(std::string_view packed, bool damaged) {
  return behind(kMarkOfAttempts, checksum_to_store(crc32c(packed), damaged), packed);
}

std::string_view unseal_attempts(std::string_view stored, bool& damaged) {
  const Opened opened = open(kMarkOfAttempts, stored);
  if (opened.checksum && crc32c(opened.payload) != *opened.checksum) damaged = true;
  return opened.payload;
}

}  // namespace hapax::postgres
