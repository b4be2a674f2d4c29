// What a worker reports of the attempt it was given.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "core/execution.h"
#include "core/lease.h"

namespace hapax {

struct Report {
  struct Completed {
    std::optional<std::string> result;  // JSON
  };
  struct Failed {
    AttemptError error;
    bool retryable = true;
  };

  LeaseToken token;
  std::variant<Completed, Failed> outcome;
};

// Applies a report whose token is current.
void apply(Execution& execution, const Report& report, Time now);

// Whether a report whose token was used before says the same as the one that was accepted. Another report under the same
// token is not a repetition: the attempt is over, and it has been told how.
bool says_the_same(const Execution& execution, const Report& report);

}  // namespace hapax
