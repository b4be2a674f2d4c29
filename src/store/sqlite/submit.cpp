#include "core/reuse.h"
#include "core/transition.h"
#include "store/new_execution.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

Row new_row(Batch& batch, const Submission& submission) {
  return {.seq = batch.tables.next_seq(),
          .queue_no = batch.tables.queue_no(submission.execution.name_space, submission.execution.queue,
                                            submission.execution.kind),
          .execution = new_execution(submission, batch.now),
          .run_in = submission.run_at ? std::nullopt : std::optional(submission.delay)};
}

SubmitOutcome answer_with(Batch& batch, Held held) {
  const Execution* owner = held.owner ? &held.owner->execution : nullptr;
  SubmitOutcome outcome;
  outcome.expires_at = dies_at(held.entry, owner, retention_of_owner(batch.policies, held));
  outcome.purged = owner == nullptr;
  outcome.execution = owner ? std::move(held.owner->execution) : execution_of(held.entry);
  return outcome;
}

// The same submission came before, and its answer got lost.
SubmitOutcome answer_of_before(Batch& batch, const ExecutionId& id) {
  Row stored = batch.tables.load_all(id).value();
  if (stored.execution.identity) {
    auto held = batch.tables.find_identity(stored.execution.identity->hash);
    if (held && held->entry.owner == id) return answer_with(batch, *std::move(held));
  }
  SubmitOutcome outcome;
  outcome.execution = std::move(stored.execution);
  return outcome;
}

SubmitOutcome created(const Submission& submission, Row row, std::optional<ExecutionId> superseded = std::nullopt,
                      Effects effects = {}) {
  SubmitOutcome outcome;
  outcome.expires_at = entry_expiry(row.execution, submission.idempotency_ttl);
  outcome.execution = std::move(row.execution);
  outcome.superseded = superseded;
  outcome.effects = std::move(effects);
  return outcome;
}

// The identity has an entry: dead, or of an owner that stands for the submission or makes way for it.
SubmitOutcome meet(Batch& batch, const Submission& submission, Row row) {
  Tables& tables = batch.tables;
  const Execution& execution = submission.execution;
  if (tables.exists(execution.id)) return answer_of_before(batch, execution.id);

  const IdentityHash& hash = execution.identity->hash;
  Held held = tables.find_identity(hash).value();
  if (held.entry.owner == execution.id) return answer_with(batch, std::move(held));

  const Execution* owner = held.owner ? &held.owner->execution : nullptr;
  std::optional<ExecutionId> superseded;
  Effects effects;
  if (is_live(held.entry, owner, retention_of_owner(batch.policies, held), batch.now)) {
    const Verdict verdict = decide(owner ? owner->status : held.entry.tombstone->status, submission.reuse);
    if (verdict == Verdict::duplicate) {
      SubmitOutcome outcome = answer_with(batch, std::move(held));
      outcome.kind = meet_owner(submission, outcome.execution);
      return outcome;
    }
    superseded = held.entry.owner;
    if (verdict == Verdict::cancel_owner) {
      const std::size_t known = owner->failed_attempts.size();
      const Duration grace = batch.policies.of(owner->name_space, owner->queue).cancel_grace;
      if (request_cancel(held.owner->execution, grace, batch.now)) settle(batch, *held.owner, known, effects);
      row.seq = tables.next_seq();
    }
  }
  row.execution = new_execution(submission, batch.now, &held.entry);
  tables.put_identity(hash, row.seq, entry_expiry(row.execution, submission.idempotency_ttl));
  tables.insert(row);
  return created(submission, std::move(row), superseded, std::move(effects));
}

SubmitOutcome submit_for_real(Batch& batch, const Submission& submission) {
  Row row = new_row(batch, submission);
  const auto& identity = submission.execution.identity;
  const auto expires_at = entry_expiry(row.execution, submission.idempotency_ttl);
  if (identity && !batch.tables.insert_identity(identity->hash, row.seq, expires_at)) {
    return meet(batch, submission, std::move(row));
  }
  if (batch.tables.insert(row)) return created(submission, std::move(row));
  if (identity) batch.tables.erase_identity(identity->hash);
  return answer_of_before(batch, submission.execution.id);
}

}  // namespace

SubmitOutcome submit(Batch& batch, const Submission& submission) {
  if (!submission.dry_run) return submit_for_real(batch, submission);
  Connection& connection = batch.tables.connection();
  connection.exec("SAVEPOINT dry_run");
  SubmitOutcome outcome = submit_for_real(batch, submission);
  connection.exec("ROLLBACK TO dry_run");
  connection.exec("RELEASE dry_run");
  batch.tables.forget();
  outcome.effects = {};
  return outcome;
}

bool release_identity(Batch& batch, const std::string& name_space, const IdentityHash& hash) {
  const auto held = batch.tables.find_identity(hash);
  return held && held->entry.name_space == name_space && batch.tables.erase_identity(hash);
}

}  // namespace hapax::sqlite
