// What a worker says about its attempt while it runs: how far it is, and lines for its log. An execution keeps what the
// latest attempt said that said anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/execution.h"

namespace hapax {

// The log keeps its latest lines: as many as this holds.
inline constexpr std::size_t kMaxLogBytes = 64 * 1024;

struct Notes {
  std::int32_t attempt = 0;             // that said it
  std::optional<std::string> progress;  // JSON; the last one counts
  std::vector<std::string> log;
  std::int64_t dropped = 0;  // earlier lines, which the log had no room for

  bool operator==(const Notes&) const = default;
};

std::string write_notes(const Notes& notes);  // as Execution::notes has them
std::optional<Notes> read_notes(const Execution& execution);

// Adds what the running attempt says. Empty: nothing changes.
void take_note(Execution& execution, const std::optional<std::string>& progress, const std::vector<std::string>& log);

}  // namespace hapax
