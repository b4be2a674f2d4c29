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
  return std::any_of(execution.failed_attempts.begin(), execution.failed_attempts.end(),
                     [&](const AttemptRecord& record) {
                       return record.attempt == report.token.attempt && record.reported && record.error == error;
                     });
}

namespace {

Digest digest_of(const std::optional<std::string>& result) { return sha256(result ? "result " + *result : "nothing"); }

// The length separates type and message.
Digest digest_of(const AttemptError& error) {
  return sha256("error " + std::to_string(error.type.size()) + " " + error.type + error.message);
}

}  // namespace

std::optional<ClosingReport> closing_report(const Execution& execution) {
  ClosingReport report;
  report.token.execution = execution.id;
  report.token.attempt = execution.attempt;
  if (execution.status == Status::completed) {
    if (!execution.lease_secret) return {};
    report.token.secret = *execution.lease_secret;
    report.said = digest_of(execution.result);
  } else {
    if (execution.failed_attempts.empty()) return {};
    const AttemptRecord& last = execution.failed_attempts.back();
    if (!last.reported || last.attempt != execution.attempt) return {};
    report.token.secret = last.secret;
    report.said = digest_of(last.error);
  }
  report.status = execution.status;
  report.name_space = execution.name_space;
  report.queue = execution.queue;
  report.had_concurrency_key = execution.concurrency_key.has_value();
  return report;
}

bool is_repeated_by(const ClosingReport& before, const Report& report) {
  if (before.token != report.token) return false;
  if (!report.name_space.empty() && report.name_space != before.name_space) return false;
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    return before.status == Status::completed && before.said == digest_of(completed->result);
  }
  return before.status != Status::completed && before.said == digest_of(std::get<Report::Failed>(report.outcome).error);
}

}  // namespace hapax
