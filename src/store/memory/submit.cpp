#include "core/reuse.h"
#include "core/transition.h"
#include "store/memory/verbs.h"
#include "store/new_execution.h"

namespace hapax::memory {
namespace {

SubmitOutcome answer_with_owner(const Tables& tables, const LedgerEntry& entry) {
  SubmitOutcome outcome;
  const Execution* owner = tables.find(entry.owner);
  outcome.execution = owner ? *owner : execution_of(entry);
  outcome.purged = owner == nullptr;
  outcome.expires_at = tables.dies_at(entry);
  return outcome;
}

// The same submission came before: its answer got lost.
std::optional<SubmitOutcome> answer_of_before(Tables& tables, const Submission& submission) {
  if (const Execution* stored = tables.find(submission.execution.id)) {
    if (const LedgerEntry* entry = tables.entry_owned_by(*stored)) {
      return answer_with_owner(tables, *entry);
    }
    SubmitOutcome outcome;
    outcome.execution = *stored;
    return outcome;
  }
  if (const LedgerEntry* entry = tables.entry_owned_by(submission.execution)) {
    return answer_with_owner(tables, *entry);
  }
  return std::nullopt;
}

Effects cancel_owner(Tables& tables, const ExecutionId& id, Time now) {
  const Execution& owner = *tables.find(id);
  const Duration grace = tables.policies->of(owner.name_space, owner.queue).cancel_grace;
  tables.change(id, [&](Execution& execution) { return request_cancel(execution, grace, now); });
  Effects effects;
  settle_closed(tables, id, effects, now);
  return effects;
}

SubmitOutcome create(Tables& tables, const Submission& submission, Time now, const LedgerEntry* before = nullptr) {
  SubmitOutcome outcome;
  outcome.execution = new_execution(submission, now, before);
  if (outcome.execution.identity) {
    const LedgerEntry entry = new_entry(outcome.execution, submission.idempotency_ttl);
    outcome.expires_at = dies_at(entry, &outcome.execution, tables.policies->retention(outcome.execution));
    if (!submission.dry_run) tables.ledger.insert_or_assign(entry.identity.hash, entry);
  }
  if (!submission.dry_run) tables.insert(outcome.execution);
  return outcome;
}

}  // namespace

SubmitOutcome submit(Tables& tables, const Submission& submission, Time now) {
  if (auto outcome = answer_of_before(tables, submission)) return *std::move(outcome);

  const auto& identity = submission.execution.identity;
  if (!identity) return create(tables, submission, now);

  const auto found = tables.ledger.find(identity->hash);
  if (found == tables.ledger.end()) return create(tables, submission, now);
  const LedgerEntry entry = found->second;
  if (!tables.is_live(entry, now)) return create(tables, submission, now, &entry);

  const ExecutionId owner_id = entry.owner;
  const Execution* owner = tables.find(owner_id);
  const Verdict verdict = decide(owner ? owner->status : entry.tombstone->status, submission.reuse);
  if (verdict == Verdict::duplicate) {
    SubmitOutcome outcome = answer_with_owner(tables, entry);
    outcome.kind = meet_owner(submission, outcome.execution);
    return outcome;
  }
  Effects effects;
  if (verdict == Verdict::cancel_owner && !submission.dry_run) effects = cancel_owner(tables, owner_id, now);
  SubmitOutcome outcome = create(tables, submission, now, &entry);
  outcome.effects = std::move(effects);
  outcome.superseded = owner_id;
  return outcome;
}

}  // namespace hapax::memory
