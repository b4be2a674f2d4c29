#include "core/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/transition.h"

namespace hapax {

namespace {

Time not_before(const Report::Failed& failed, Time now) {
  if (!failed.retry_after) return now;
  if (const auto* after = std::get_if<Duration>(&*failed.retry_after)) return now + *after;
  return std::get<Time>(*failed.retry_after);
}

}  // namespace

void apply(Execution& execution, const Report& report, Time now) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    complete(execution, completed->result, now);
  } else if (const auto* snoozed = std::get_if<Report::Snoozed>(&report.outcome)) {
    snooze(execution, snoozed->by, now);
  } else {
    const auto& failed = std::get<Report::Failed>(report.outcome);
    fail_attempt(execution, failed.error, failed.retryable, now, not_before(failed, now));
  }
}

bool says_the_same(const Execution& execution, const Report& report) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    return execution.status == Status::completed && execution.attempt == report.token.attempt &&
           execution.result == completed->result;
  }
  if (std::holds_alternative<Report::Snoozed>(report.outcome)) return was_snoozed(execution, report.token);
  const AttemptError& error = std::get<Report::Failed>(report.outcome).error;
  return std::any_of(execution.failed_attempts.begin(), execution.failed_attempts.end(),
                     [&](const AttemptRecord& record) {
                       return record.attempt == report.token.attempt && record.reported && record.error == error;
                     });
}

namespace {

Digest digest_of(const std::optional<std::string>& result) { return sha256(result ? "result " + *result : "nothing"); }

// The lengths keep the parts apart.
Digest digest_of(const AttemptError& error) {
  std::string said = "error " + std::to_string(error.type.size()) + " " + error.type + error.message;
  for (const auto& [word, more] : {std::pair("stack", &error.stack), std::pair("details", &error.details)}) {
    if (*more) said += fmt::format("{} {} {}", word, (*more)->size(), **more);
  }
  return sha256(said);
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
  const auto* failed = std::get_if<Report::Failed>(&report.outcome);
  return failed && before.status != Status::completed && before.said == digest_of(failed->error);
}

}  // namespace hapax
