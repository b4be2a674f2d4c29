// What a worker reports about its attempt.
#pragma once

#include <chrono>
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
    std::optional<std::variant<Duration, Time>> retry_after = std::nullopt;  // no attempt begins before
  };
  // Again later; it costs no attempt.
  struct Snoozed {
    Duration by{0};
  };

  LeaseToken token;
  std::variant<Completed, Failed, Snoozed> outcome;
  std::string name_space = {};  // the caller's: a lease of another namespace is lost; empty: any
};

// Applies a report whose token is current.
void apply(Execution& execution, const Report& report, Time now);

// Whether a report under a used token says the same as the accepted one. A different report under the same token is not
// a repetition: the attempt has ended, with another outcome.
bool says_the_same(const Execution& execution, const Report& report);

// What a store keeps, for kReportMemory, of a report that closed an execution which is deleted earlier: so that the
// same report, repeated after a lost answer, gets the same answer.
struct ClosingReport {
  LeaseToken token;
  Digest said{};  // of the result or the error
  Status status = Status::completed;
  std::string name_space, queue;
  bool had_concurrency_key = false;

  bool operator==(const ClosingReport&) const = default;
};

inline constexpr Duration kReportMemory = std::chrono::minutes(10);

// Of a closed execution with all its attempts. Absent: no report closed it.
std::optional<ClosingReport> closing_report(const Execution& execution);

bool is_repeated_by(const ClosingReport& before, const Report& report);

}  // namespace hapax
