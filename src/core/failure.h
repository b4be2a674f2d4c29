// The failures: what is thrown rather than returned. A small closed family, told apart by what the caller may do next.
// Created, duplicate, conflict, lease lost and not found are no failures: they are ordinary answers, and returned.
#pragma once

#include <stdexcept>
#include <string>

namespace hapax {

class Failure : public std::runtime_error {
 public:
  enum class Code {
    unavailable,      // the store could not do it and did nothing; the same again may work
    outcome_unknown,  // the store lost the answer while committing; ask again under the same identity
    corrupt,          // the data is not what it must be; trying again does not help
    misuse,           // the store cannot be opened or used like this: wrong path, newer schema, bad URL
    stopped           // this engine is shutting down and did nothing
  };

  Failure(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}

  Code code() const { return code_; }
  bool safe_to_retry() const {
    return code_ == Code::unavailable || code_ == Code::outcome_unknown || code_ == Code::stopped;
  }

 private:
  Code code_;
};

}  // namespace hapax
