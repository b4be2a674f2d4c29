#include <list>

#include "core/transition.h"
#include "store/rules/new_execution.h"
#include "store/rules/submit.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

Row new_row(Batch& batch, const Submission& submission, const Execution& execution) {
  return {.seq = batch.tables.next_seq(),
          .queue_no = batch.tables.queue_no(execution.name_space, execution.queue, execution.kind),
          .execution = execution,
          .run_in = submission.run_at ? std::nullopt : std::optional(submission.delay)};
}

class Rows final : public rules::SubmitRows {
 public:
  explicit Rows(Batch& batch) : batch_(batch) {}

  Time now() override { return batch_.now; }
  const QueuePolicies& policies() override { return batch_.policies; }

  const LedgerEntry* entry(const Execution& execution) override {
    const IdentityHash& hash = execution.identity->hash;
    if (const Held* known = find(hash)) return &known->entry;
    auto held = batch_.tables.find_identity(hash);
    return held ? &held_.emplace_back(*std::move(held)).entry : nullptr;
  }
  const Execution* owner(const LedgerEntry& entry) override {
    const Held& held = *find(entry.identity.hash);
    return held.owner ? &held.owner->execution : nullptr;
  }
  const Execution* stored(const ExecutionId& id, const LedgerEntry*) override {
    if (!stored_ && batch_.tables.exists(id)) stored_ = batch_.tables.load_all(id);
    return stored_ ? &stored_->execution : nullptr;
  }

  Effects cancel(const ExecutionId& owner) override {
    Row row = batch_.tables.load_all(owner).value();
    const std::size_t known = row.execution.failed_attempts.size();
    const Duration grace = batch_.policies.of(row.execution.name_space, row.execution.queue).cancel_grace;
    Effects effects;
    if (request_cancel(row.execution, grace, batch_.now)) settle(batch_, row, known, effects);
    return effects;
  }
  void add(const Submission& submission, const Execution& execution, const std::optional<LedgerEntry>& entry) override {
    const Row row = new_row(batch_, submission, execution);
    if (entry) batch_.tables.put_identity(entry->identity.hash, row.seq, entry->expires_at);
    batch_.tables.insert(row);
  }

 private:
  const Held* find(const IdentityHash& hash) const {
    for (const Held& held : held_) {
      if (held.entry.identity.hash == hash) return &held;
    }
    return nullptr;
  }

  Batch& batch_;
  std::list<Held> held_;
  std::optional<Row> stored_;
};

// Most are new: to insert tells it in one step. Nothing, if the identity or the id is there already.
std::optional<SubmitOutcome> create_new(Batch& batch, const Submission& submission) {
  SubmitOutcome outcome = rules::created(submission, batch.now);
  const auto& identity = outcome.execution.identity;
  const Row row = new_row(batch, submission, outcome.execution);
  if (identity && !batch.tables.insert_identity(identity->hash, row.seq, outcome.expires_at)) return std::nullopt;
  if (batch.tables.insert(row)) return outcome;
  if (identity) batch.tables.erase_identity(identity->hash);
  return std::nullopt;
}

}  // namespace

SubmitOutcome submit(Batch& batch, const Submission& submission) {
  if (!submission.dry_run) {
    if (auto outcome = create_new(batch, submission)) return *std::move(outcome);
  }
  Rows rows(batch);
  return rules::submit(rows, submission);
}

bool release_identity(Batch& batch, const std::string& name_space, const IdentityHash& hash) {
  const auto held = batch.tables.find_identity(hash);
  return held && held->entry.name_space == name_space && batch.tables.erase_identity(hash);
}

}  // namespace hapax::sqlite
