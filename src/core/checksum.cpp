#include "core/checksum.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "core/failure.h"
#include "core/fields.h"

namespace hapax {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr auto kTable = make_table();

std::uint32_t by_table(std::uint32_t crc, const char* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint8_t>(bytes[i])) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc, const char* bytes, std::size_t size) {
  std::uint64_t wide = crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++bytes, --size) crc = __builtin_ia32_crc32qi(crc, static_cast<std::uint8_t>(*bytes));
  return crc;
}

const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (kHasInstruction) return ~by_instruction(~before, bytes.data(), bytes.size());
#endif
  return ~by_table(~before, bytes.data(), bytes.size());
}

Checksum& Checksum::add(std::string_view bytes) {
  add(std::int64_t{std::ssize(bytes)});
  crc_ = crc32c(bytes, crc_);
  return *this;
}

Checksum& Checksum::add(std::int64_t number) {
  std::array<char, 8> little{};
  for (std::size_t i = 0; i < little.size(); ++i)
    little[i] = static_cast<char>(static_cast<std::uint64_t>(number) >> 8 * i);
  crc_ = crc32c({little.data(), little.size()}, crc_);
  return *this;
}

namespace {

// Adds every field that is visited.
struct Sum {
  Checksum& checksum;

  template <class Value>
  void operator()(const Field&, const Value& value) {
    add(value);
  }

  template <class Value>
  void add(const std::optional<Value>& value) {
    checksum.add(std::int64_t{value.has_value()});
    if (value) add(*value);
  }
  template <class Value>
  void add(const Value& value) {
    if constexpr (Described<const Value>) {
      fields(*this, value);
    } else if constexpr (requires { value.bytes; }) {
      checksum.add(std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
    } else if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
      checksum.add(static_cast<std::int32_t>(value));
    } else if constexpr (std::is_same_v<Value, double>) {
      checksum.add(std::bit_cast<std::int64_t>(value));
    } else {
      checksum.add(value);
    }
  }
  void add(const std::vector<AttemptRecord>&) {}  // each has a checksum of its own
};

}  // namespace

std::uint32_t checksum_of_facts(const Execution& e, std::string_view parent_workflow_id) {
  Checksum checksum;
  checksum.add(e.concurrency_key).add(parent_workflow_id);
  telling_fields(Sum{checksum}, e);
  rare_fields(Sum{checksum}, e);
  return checksum.add(e.input).value();
}

std::uint32_t checksum_of_state(const Execution& e) {
  Checksum checksum;
  state_fields(Sum{checksum}, e);
  return checksum.value();
}

std::uint32_t checksum_of(const AttemptRecord& record) {
  Checksum checksum;
  fields(Sum{checksum}, record);
  return checksum.value();
}

std::uint32_t checksum_of(const Event& event) {
  Checksum checksum;
  fields(Sum{checksum}, event);
  return checksum.value();
}

std::string describe_damage(const ExecutionId& id) {
  return fmt::format("What is stored of {} does not match its checksum: restore it from a backup.", id.to_string());
}

namespace {

[[noreturn]] void throw_damaged(const ExecutionId& id) {
  throw Failure(Failure::Code::corrupt, describe_damage(id), describe_damage(id));
}

}  // namespace

void require_sound(const Execution& execution) {
  if (execution.damaged) throw_damaged(execution.id);
}

void require_sound(const ExecutionId& run, const Event& event) {
  if (event.damaged) throw_damaged(run);
}

}  // namespace hapax
