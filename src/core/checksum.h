// CRC-32C over what is stored: tells what came back as it was written from what did not. Stored with the data, so
// neither the polynomial nor what is covered may change; a store that finds no checksum reads as before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/execution.h"
#include "core/workflow.h"

namespace hapax {

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

// Of several values: each with its length, so that no two sequences run together.
class Checksum {
 public:
  Checksum& add(std::string_view bytes);
  Checksum& add(const std::string& text) { return add(std::string_view(text)); }
  Checksum& add(std::int64_t number);
  Checksum& add(std::int32_t number) { return add(std::int64_t{number}); }
  Checksum& add(Time time) { return add(to_ms(time)); }
  template <class Value>
  Checksum& add(const std::optional<Value>& value) {
    return value ? add(std::int64_t{1}).add(*value) : add(std::int64_t{0});
  }
  Checksum& add(const AttemptError& error) {
    return add(error.type).add(error.message).add(error.stack).add(error.details);
  }

  std::uint32_t value() const { return crc_; }

 private:
  std::uint32_t crc_ = 0;
};

// Of what never changes, but for the ids and numbers by which it is found.
std::uint32_t checksum_of_facts(const Execution& execution, std::string_view parent_workflow_id);
inline std::uint32_t checksum_of_facts(const Execution& execution) {
  return checksum_of_facts(execution, execution.parent_workflow_id);
}
// Of its status, times, result and errors.
std::uint32_t checksum_of_state(const Execution& execution);
std::uint32_t checksum_of(const AttemptRecord& record);
std::uint32_t checksum_of(const Event& event);

// What is stored for it: its checksum, or one that never matches, so that what was found damaged stays damaged.
inline std::uint32_t checksum_to_store(std::uint32_t checksum, bool damaged) { return damaged ? ~checksum : checksum; }

std::string describe_damage(const ExecutionId& id);
// Throws Failure::corrupt unless it may be handed out.
void require_sound(const Execution& execution);
void require_sound(const ExecutionId& run, const Event& event);

}  // namespace hapax
