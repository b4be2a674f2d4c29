#include "core/transition.h"
#include "store/memory/verbs.h"

namespace hapax::memory {
namespace {

// The token of an execution that is not there is as good as stale.
TokenCheck check(const Tables& tables, const LeaseToken& token, const std::string& name_space) {
  const Execution* execution = tables.find(token.execution);
  return execution ? check_token(*execution, token, name_space) : TokenCheck::stale;
}

// A turn is committed, not reported on.
bool is_turn(const Tables& tables, const LeaseToken& token) {
  const Execution* execution = tables.find(token.execution);
  return execution && execution->kind == Kind::workflow;
}

}  // namespace

ExtendOutcome extend(Tables& tables, const Extension& extension, Time now) {
  ExtendOutcome outcome;
  if (check(tables, extension.token, extension.name_space) != TokenCheck::current) return outcome;
  const ExecutionId& id = extension.token.execution;
  tables.change(id, [&](Execution& execution) {
    extension.lease > Duration(0) ? extend_lease(execution, extension.lease, now) : give_back(execution, now);
  });
  const Execution& execution = *tables.find(id);
  outcome.ok = true;
  outcome.cancel_requested = execution.cancel_requested_at.has_value();
  outcome.lease_expires_at = execution.lease_expires_at;
  if (extension.lease <= Duration(0)) outcome.effects.add_changed(execution);
  settle_closed(tables, id, outcome.effects, now);  // giving back closes what was to be cancelled
  return outcome;
}

FinishOutcome finish(Tables& tables, const Report& report, Time now) {
  FinishOutcome outcome;
  const ClosingReport* before = tables.find(report.token.execution) ? nullptr : tables.report_before(report, now);
  if (before) {
    outcome.accepted = true;
    outcome.status = before->status;
    outcome.name_space = before->name_space;
    outcome.queue = before->queue;
    outcome.had_concurrency_key = before->had_concurrency_key;
    return outcome;
  }
  const TokenCheck token = check(tables, report.token, report.name_space);
  if (token == TokenCheck::stale || is_turn(tables, report.token)) return outcome;

  const ExecutionId& id = report.token.execution;
  if (token == TokenCheck::repeated && !says_the_same(*tables.find(id), report)) return outcome;
  if (token == TokenCheck::current) tables.change(id, [&](Execution& execution) { apply(execution, report, now); });

  const Execution& execution = *tables.find(id);
  outcome.accepted = true;
  outcome.status = execution.status;
  outcome.name_space = execution.name_space;
  outcome.queue = execution.queue;
  outcome.had_concurrency_key = execution.concurrency_key.has_value();
  if (execution.status == Status::pending) outcome.run_at = execution.run_at;
  if (token == TokenCheck::current) outcome.purged = settle_closed(tables, id, outcome.effects, now);
  if (outcome.purged) tables.remember_report(*outcome.purged, now);
  return outcome;
}

}  // namespace hapax::memory
