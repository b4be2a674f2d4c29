#include "store/sqlite/sqlite_rows.h"

#include "store/rules/submit.h"

namespace hapax::sqlite {

// ---- executions

std::optional<Execution> SqliteRows::load(const ExecutionId& id) {
  auto row = batch_.tables.load_all(id);
  if (!row) return std::nullopt;
  return rows_.insert_or_assign(id, *std::move(row)).first->second.execution;
}

std::optional<Execution> SqliteRows::load_state(const ExecutionId& id) {
  auto row = batch_.tables.load_state(id);
  if (!row) return std::nullopt;
  return rows_.insert_or_assign(id, *std::move(row)).first->second.execution;
}

Row& SqliteRows::loaded(const ExecutionId& id) {
  const auto row = rows_.find(id);
  if (row != rows_.end()) return row->second;
  return rows_.emplace(id, batch_.tables.load_all(id).value()).first->second;
}

Row SqliteRows::new_row(const Execution& execution, std::optional<Duration> run_in) {
  return {.seq = batch_.tables.next_seq(),
          .queue_no = batch_.tables.queue_no(execution.name_space, execution.queue, execution.kind),
          .execution = execution,
          .run_in = run_in};
}

void SqliteRows::insert(const Execution& execution, std::optional<Duration> run_in) {
  Row row = new_row(execution, run_in);
  batch_.tables.insert(row);
  rows_.insert_or_assign(execution.id, std::move(row));
  forget_held();
}

void SqliteRows::save(const Execution& execution) {
  Row& row = loaded(execution.id);
  const std::size_t known = row.execution.failed_attempts.size();
  row.execution = execution;
  batch_.tables.save(row, known);
  free_slot(row.queue_no, execution);
  forget_held();
}

void SqliteRows::erase(const Execution& execution) {
  const Row& row = loaded(execution.id);
  batch_.tables.erase(row);
  free_slot(row.queue_no, execution);
  rows_.erase(execution.id);
  forget_held();
}

// An execution that was unparked and is closed before it is claimed passes its slot on, too.
void SqliteRows::free_slot(std::int64_t queue_no, const Execution& execution) {
  if (!execution.concurrency_key || execution.status == Status::running) return;
  const QueuePolicy& policy = batch_.policies.of(execution.name_space, execution.queue);
  batch_.tables.unpark(queue_no, *execution.concurrency_key, policy.concurrency_limit);
}

// Most are new, and an insert shows it in one step. Nothing if the identity or the id exists.
std::optional<SubmitOutcome> SqliteRows::create_new(const Submission& submission) {
  SubmitOutcome outcome = rules::created(submission, batch_.now);
  const auto& identity = outcome.execution.identity;
  Row row = new_row(outcome.execution, submission.run_at ? std::nullopt : std::optional(submission.delay));
  if (identity && !batch_.tables.insert_identity(identity->hash, row.seq, outcome.expires_at)) return std::nullopt;
  if (batch_.tables.insert(row)) return outcome;
  if (identity) batch_.tables.erase_identity(identity->hash);
  return std::nullopt;
}

SubmitOutcome SqliteRows::submit(const Submission& submission) {
  forget_held();
  if (!submission.dry_run && !submission.run_here) {
    if (auto outcome = create_new(submission)) return *std::move(outcome);
  }
  return rules::submit(*this, submission);
}

// ---- the ledger

void SqliteRows::forget_held() {
  held_.clear();
  stored_.reset();
}

const Held* SqliteRows::find_held(const IdentityHash& hash) const {
  for (const Held& held : held_) {
    if (held.entry.identity.hash == hash) return &held;
  }
  return nullptr;
}

const LedgerEntry* SqliteRows::entry(const Execution& execution) {
  const IdentityHash& hash = execution.identity->hash;
  if (const Held* known = find_held(hash)) return &known->entry;
  auto held = batch_.tables.find_identity(hash);
  return held ? &held_.emplace_back(*std::move(held)).entry : nullptr;
}

const Execution* SqliteRows::owner(const LedgerEntry& entry) {
  const Held& held = *find_held(entry.identity.hash);
  return held.owner ? &held.owner->execution : nullptr;
}

const Execution* SqliteRows::stored(const ExecutionId& id, const LedgerEntry*) {
  if (!stored_ && batch_.tables.exists(id)) stored_ = batch_.tables.load_all(id);
  return stored_ ? &stored_->execution : nullptr;
}

void SqliteRows::put_entry(const Execution& owner, const LedgerEntry& entry) {
  forget_held();
  const std::int64_t seq = loaded(owner.id).seq;
  if (entry.tombstone) {
    batch_.tables.bury_identity(entry, seq);
  } else {
    batch_.tables.put_identity(entry.identity.hash, seq, entry.expires_at);
  }
}

void SqliteRows::erase_entry(const LedgerEntry& entry) {
  forget_held();
  batch_.tables.erase_identity(entry.identity.hash);
}

// ---- reports

void SqliteRows::keep_report(const ClosingReport& report, Time until) {
  constexpr std::int64_t kForgottenForEachKept = 2;  // so that the table stays small without waiting for a cleanup
  batch_.tables.forget_reports(batch_.now, kForgottenForEachKept);
  batch_.tables.keep_report(report, until);
}

}  // namespace hapax::sqlite
