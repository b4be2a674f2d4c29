#include "core/transition.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

// The execution that the token is of, and how they stand to each other. The token of one that is not there is stale.
TokenCheck check(Batch& batch, const LeaseToken& token, const std::string& name_space, std::optional<Row>& row) {
  row = batch.tables.load_state(token.execution);
  if (!row) return TokenCheck::stale;
  const TokenCheck answer = check_token(row->execution, token, name_space);
  // Only reports on earlier attempts are looked up among those; most reports are on the running one.
  if (answer != TokenCheck::stale || row->failures == 0) return answer;
  batch.tables.load_attempts(*row);
  return check_token(row->execution, token, name_space);
}

// The execution is gone: closed by this very report before, or not at all.
FinishOutcome answer_again(Batch& batch, const Report& report) {
  FinishOutcome outcome;
  const auto before = batch.tables.report_before(report, batch.now);
  if (!before) return outcome;
  outcome.accepted = true;
  outcome.status = before->status;
  outcome.name_space = before->name_space;
  outcome.queue = before->queue;
  outcome.had_concurrency_key = before->had_concurrency_key;
  return outcome;
}

}  // namespace

ExtendOutcome extend(Batch& batch, const Extension& extension) {
  ExtendOutcome outcome;
  std::optional<Row> row;
  if (check(batch, extension.token, extension.name_space, row) != TokenCheck::current) return outcome;
  Execution& execution = row->execution;
  if (extension.lease > Duration(0)) {
    extend_lease(execution, extension.lease, batch.now);
    batch.tables.save(*row, execution.failed_attempts.size());
  } else {
    give_back(execution, batch.now);
    outcome.effects.add_changed(execution);
    settle(batch, *row, execution.failed_attempts.size(), outcome.effects);
  }
  outcome.ok = true;
  outcome.cancel_requested = execution.cancel_requested_at.has_value();
  outcome.lease_expires_at = execution.lease_expires_at;
  return outcome;
}

FinishOutcome finish(Batch& batch, const Report& report) {
  FinishOutcome outcome;
  std::optional<Row> row;
  const TokenCheck token = check(batch, report.token, report.name_space, row);
  if (!row) return answer_again(batch, report);
  if (token == TokenCheck::stale || row->execution.kind == Kind::workflow) return outcome;  // a turn is committed
  if (token == TokenCheck::repeated) {
    row = batch.tables.load_all(row->seq);
    if (!says_the_same(row->execution, report)) return outcome;
  }

  bool purged = false;
  if (token == TokenCheck::current) {
    if (is_unretained(batch, *row)) row = batch.tables.load_all(row->seq);
    const std::size_t known = row->execution.failed_attempts.size();
    apply(row->execution, report, batch.now);
    purged = settle(batch, *row, known, outcome.effects);
    if (purged) batch.tables.remember_report(*row, batch.now);
  }

  Execution& execution = row->execution;
  outcome.accepted = true;
  outcome.status = execution.status;
  outcome.name_space = execution.name_space;
  outcome.queue = execution.queue;
  outcome.had_concurrency_key = execution.concurrency_key.has_value();
  if (execution.status == Status::pending) outcome.run_at = execution.run_at;
  if (purged) outcome.purged = std::move(execution);
  return outcome;
}

}  // namespace hapax::sqlite
