#include "store/rules/finish.h"

#include <utility>

#include "core/notes.h"
#include "core/transition.h"
#include "store/rules/close.h"

namespace hapax::rules {

namespace {

// The execution is gone: closed by this same report before, or never there.
FinishOutcome answer_again(Rows& rows, const Report& report) {
  FinishOutcome outcome;
  const auto before = rows.find_report(report.token.execution);
  if (!before || !is_repeated_by(*before, report)) return outcome;
  outcome.accepted = true;
  outcome.status = before->status;
  outcome.name_space = before->name_space;
  outcome.queue = before->queue;
  outcome.had_concurrency_key = before->had_concurrency_key;
  return outcome;
}

}  // namespace

FinishOutcome apply_report(Execution& execution, const Report& report, Time now) {
  FinishOutcome outcome;
  if (execution.kind == Kind::workflow) return outcome;  // a turn is committed, not reported on
  const TokenCheck token = check_token(execution, report.token, report.name_space);
  if (token == TokenCheck::stale) return outcome;
  if (token == TokenCheck::repeated && !says_the_same(execution, report)) return outcome;
  if (token == TokenCheck::current) apply(execution, report, now);
  outcome.accepted = true;
  outcome.status = execution.status;
  outcome.name_space = execution.name_space;
  outcome.queue = execution.queue;
  outcome.had_concurrency_key = execution.concurrency_key.has_value();
  if (execution.status == Status::pending) outcome.run_at = execution.run_at;
  outcome.snoozed = std::holds_alternative<Report::Snoozed>(report.outcome);
  return outcome;
}

FinishOutcome finish(Rows& rows, Execution execution, const Report& report) {
  const bool counts = check_token(execution, report.token, report.name_space) == TokenCheck::current;
  FinishOutcome outcome = apply_report(execution, report, rows.now());
  if (!outcome.accepted || !counts) return outcome;
  outcome.purged = settle(rows, std::move(execution), outcome.effects);
  if (outcome.purged) remember_report(rows, *outcome.purged);
  return outcome;
}

FinishOutcome finish(Rows& rows, const Report& report) {
  const ExecutionId& id = report.token.execution;
  auto execution = load_to_close(rows, id);
  if (!execution) return answer_again(rows, report);
  // The attempts show whether a report was accepted before.
  if (check_token(*execution, report.token, report.name_space) != TokenCheck::current) execution = rows.load(id);
  return finish(rows, *std::move(execution), report);
}

ExtendOutcome apply_extension(Execution& execution, const Extension& extension, Time now) {
  ExtendOutcome outcome;
  if (check_token(execution, extension.token, extension.name_space) != TokenCheck::current) return outcome;
  const bool gives_back = extension.lease <= Duration(0);
  if (execution.kind == Kind::task) take_note(execution, extension.progress, extension.log);
  gives_back ? give_back(execution, now) : extend_lease(execution, extension.lease, now);
  outcome.ok = true;
  outcome.cancel_requested = execution.cancel_requested_at.has_value();
  outcome.lease_expires_at = execution.lease_expires_at;
  if (gives_back) outcome.effects.add_changed(execution);
  return outcome;
}

ExtendOutcome extend(Rows& rows, const Extension& extension) {
  auto execution = load_to_close(rows, extension.token.execution);
  if (!execution) return {};
  ExtendOutcome outcome = apply_extension(*execution, extension, rows.now());
  if (outcome.ok)
    settle(rows, *std::move(execution), outcome.effects);  // giving back closes a task with a pending cancel
  return outcome;
}

}  // namespace hapax::rules
