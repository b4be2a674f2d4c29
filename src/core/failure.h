// The failures: everything that is thrown rather than returned. A small closed family, distinguished by what the caller
// may do next. Created, duplicate, conflict, lease lost and not found are not failures: they are ordinary answers, and
// returned.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hapax {

class Failure : public std::runtime_error {
 public:
  enum class Code {
    unavailable,      // the store could not do it and did nothing; trying again may work
    outcome_unknown,  // the store lost the answer during the commit; ask again under the same identity
    corrupt,          // the data is damaged; trying again does not help
    misuse,           // it cannot be used like this: wrong path, newer schema, bad URL, a bad request (InvalidField)
    stopped           // this engine is shutting down and did nothing
  };

  // `for_clients` is a sentence; empty if the message may contain what clients must not see, such as hosts and paths.
  Failure(Code code, const std::string& message, std::string for_clients = {})
      : std::runtime_error(message), code_(code), for_clients_(std::move(for_clients)) {}

  Code code() const { return code_; }
  const std::string& for_clients() const { return for_clients_; }
  bool safe_to_retry() const {
    return code_ == Code::unavailable || code_ == Code::outcome_unknown || code_ == Code::stopped;
  }

 private:
  Code code_;
  std::string for_clients_;
};

}  // namespace hapax
