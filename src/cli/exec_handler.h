// From what a program did to what its task's attempt came to.
#pragma once

#include <stdexcept>
#include <string>

#include "cli/child_process.h"

namespace hapax {

// A handler says with this exit code that trying again is of no use.
constexpr int kFinalExitCode = 100;

// The attempt failed, and may be tried again. Its name is the type of the error that the task keeps.
class HandlerFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The result as JSON text; "" for nothing. Throws HandlerFailed, FinalError or Cancelled (hapax/error.h).
std::string result_of(const ChildOutcome& outcome);

// Standard output as a result: JSON if it is, else a JSON string without the last line's end; "" for nothing.
std::string output_as_json(const std::string& output);

}  // namespace hapax
