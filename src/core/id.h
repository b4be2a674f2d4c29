// The id of an execution: a UUIDv7, so that ids sort by the time they were made.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace hapax {

struct ExecutionId {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const ExecutionId&) const = default;

  std::string to_string() const;                                   // 019bf2d4-…, lower case
  static std::optional<ExecutionId> parse(std::string_view text);  // any UUID, either case

  bool is_v7() const;
  Time drawn_at() const;  // of a UUIDv7, by the sender's clock
};

// Fills the range from the operating system's secure generator.
void fill_random(void* data, std::size_t size);

// Makes UUIDv7s that rise strictly within one generator, even within a millisecond and when the clock steps back: tasks
// submitted in order through one server have ids in order. Safe to share between threads.
class IdGenerator {
 public:
  ExecutionId next(Time now);

 private:
  std::mutex mutex_;
  std::int64_t last_ms_ = -1;
  std::uint32_t counter_ = 0;
};

}  // namespace hapax

template <>
struct std::hash<hapax::ExecutionId> {
  std::size_t operator()(const hapax::ExecutionId& id) const noexcept;
};
