// From a program's exit to the outcome of its attempt.
#pragma once

#include <stdexcept>
#include <string>

#include "cli/child_process.h"

namespace hapax {

// The exit code with which a handler says that a retry is useless.
constexpr int kFinalExitCode = 100;
// With which it asks to run again later, without costing an attempt; what it printed says when: "5m".
constexpr int kSnoozeExitCode = 101;

// The attempt failed, and may be tried again. The task keeps this name as the type of its error.
class HandlerFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The result as JSON text; "" for nothing. Throws HandlerFailed, FinalError, Snooze or Cancelled (hapax/error.h).
std::string result_of(const ChildOutcome& outcome);

// Standard output as a result: JSON if it parses, else a JSON string without the last newline; "" for nothing.
std::string output_as_json(const std::string& output);

}  // namespace hapax
