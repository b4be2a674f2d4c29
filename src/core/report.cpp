#include "core/report.h"

#include <algorithm>

#include "core/transition.h"

namespace hapax {

void apply(Execution& execution, const Report& report, Time now) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    complete(execution, completed->result, now);
  } else {
    const auto& failed = std::get<Report::Failed>(report.outcome);
    fail_attempt(execution, failed.error, failed.retryable, now);
  }
}

bool says_the_same(const Execution& execution, const Report& report) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    return execution.status == Status::completed && execution.attempt == report.token.attempt &&
           execution.result == completed->result;
  }
  const AttemptError& error = std::get<Report::Failed>(report.outcome).error;
  return std::any_of(execution.failed_attempts.begin(), execution.failed_attempts.end(), [&](const AttemptRecord& record) {
    return record.attempt == report.token.attempt && record.reported && record.error == error;
  });
}

}  // namespace hapax
