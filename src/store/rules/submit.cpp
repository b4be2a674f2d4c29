#include "store/rules/submit.h"

#include "core/reuse.h"
#include "core/transition.h"
#include "store/rules/close.h"
#include "store/rules/hand_out.h"
#include "store/rules/new_execution.h"

namespace hapax::rules {

namespace {

Duration retention(Rows& rows, const LedgerEntry& entry, const Execution* owner) {
  if (owner) return rows.policies().retention(*owner);
  return rows.policies().retention(entry.name_space, entry.tombstone->queue, entry.tombstone->kind);
}

// Neither the owner nor a tombstone: something other than Hapax has deleted the owner.
bool is_abandoned(const LedgerEntry& entry, const Execution* owner) { return !owner && !entry.tombstone; }

SubmitOutcome describe_owner(Rows& rows, const LedgerEntry& entry) {
  const Execution* owner = rows.owner(entry);
  SubmitOutcome outcome;
  outcome.execution = owner ? *owner : execution_of(entry);
  outcome.purged = owner == nullptr;
  outcome.expires_at = dies_at(entry, owner, retention(rows, entry, owner));
  return outcome;
}

// What is known of the execution that was created under the id. Its identity may belong to another one by now.
std::optional<SubmitOutcome> find_first(Rows& rows, const ExecutionId& id, const LedgerEntry* entry) {
  if (const Execution* stored = rows.stored(id, entry)) {
    SubmitOutcome first;
    first.execution = *stored;
    const LedgerEntry* own = first.execution.identity ? rows.entry(first.execution) : nullptr;
    return own && own->owner == id ? describe_owner(rows, *own) : first;
  }
  const bool was_purged = entry && entry->owner == id && !is_abandoned(*entry, rows.owner(*entry));
  return was_purged ? std::optional(describe_owner(rows, *entry)) : std::nullopt;
}

// The same id is the same submission, whatever its key, strategy or reuse: it gets its first answer again. A step is
// named by its run, and no client draws an id for it.
std::optional<SubmitOutcome> answer_again(Rows& rows, const Submission& submission, const LedgerEntry* entry) {
  const Execution& sent = submission.execution;
  std::optional<SubmitOutcome> first = find_first(rows, sent.id, entry);
  if (!first) return std::nullopt;
  first->superseded = first->execution.superseded;
  if (sent.parent) return first;
  if (first->execution.name_space != sent.name_space) {
    first.emplace().kind = SubmitOutcome::Kind::id_taken;
  } else if (first->execution.kind != sent.kind || first->execution.type != sent.type ||
             first->execution.input_hash != sent.input_hash) {
    first->kind = SubmitOutcome::Kind::conflict;
  }
  return first;
}

// The new one takes its place, and says so.
Effects cancel_owner(Rows& rows, const ExecutionId& id) {
  Effects effects;
  Execution owner = rows.load(id).value();
  const Duration grace = rows.policies().of(owner.name_space, owner.queue).cancel_grace;
  if (request_cancel(owner, grace, rows.now())) settle(rows, std::move(owner), effects);
  return effects;
}

Verdict judge(Rows& rows, const LedgerEntry& entry, Reuse reuse) {
  const Execution* owner = rows.owner(entry);
  return decide(owner ? owner->status : entry.tombstone->status, reuse);
}

SubmitOutcome create(Rows& rows, const Submission& submission, const LedgerEntry* before,
                     const std::optional<ExecutionId>& superseded = std::nullopt) {
  SubmitOutcome outcome;
  outcome.execution = new_execution(submission, rows.now(), before);
  outcome.execution.superseded = outcome.superseded = superseded;
  std::optional<LedgerEntry> entry;
  if (outcome.execution.identity) entry = new_entry(outcome.execution, submission.idempotency_ttl);
  if (entry) outcome.expires_at = entry->expires_at;
  if (submission.dry_run) return outcome;
  rows.insert(outcome.execution, submission.run_at ? std::nullopt : std::optional(submission.delay));
  if (entry) rows.put_entry(outcome.execution, *entry);
  return outcome;
}

}  // namespace

bool is_held(Rows& rows, const LedgerEntry& entry) {
  const Execution* owner = rows.owner(entry);
  return !is_abandoned(entry, owner) && is_live(entry, owner, retention(rows, entry, owner), rows.now());
}

namespace {

// Its first answer, or that of an owner that stands for it.
std::optional<SubmitOutcome> find_standing(Rows& rows, const Submission& submission) {
  const LedgerEntry* entry = submission.execution.identity ? rows.entry(submission.execution) : nullptr;
  if (auto first = answer_again(rows, submission, entry)) return first;
  if (!entry || !is_held(rows, *entry)) return std::nullopt;
  if (judge(rows, *entry, submission.reuse) != Verdict::duplicate) return std::nullopt;
  SubmitOutcome outcome = describe_owner(rows, *entry);
  outcome.kind = meet_owner(submission, outcome.execution);
  return outcome;
}

SubmitOutcome meet_or_create(Rows& rows, const Submission& submission) {
  if (auto answer = find_standing(rows, submission)) return *std::move(answer);
  const LedgerEntry* entry = submission.execution.identity ? rows.entry(submission.execution) : nullptr;
  if (entry) {
    // An entry may have said that the id need not be looked up. What is created must certainly be the first of its id.
    if (auto first = answer_again(rows, submission, nullptr)) return *std::move(first);
    entry = rows.entry(submission.execution);
  }
  if (!entry) return create(rows, submission, nullptr);
  const LedgerEntry before = *entry;
  if (!is_held(rows, before)) return create(rows, submission, &before);

  Effects effects;
  const bool cancels = judge(rows, before, submission.reuse) == Verdict::cancel_owner;
  if (cancels && !submission.dry_run) effects = cancel_owner(rows, before.owner);
  SubmitOutcome outcome = create(rows, submission, &before, before.owner);
  outcome.effects = std::move(effects);
  return outcome;
}

bool may_be_claimed_by(const SubmitOutcome& outcome) {
  using Answer = SubmitOutcome::Kind;
  return !outcome.purged && (outcome.kind == Answer::created || outcome.kind == Answer::duplicate);
}

// It was sent before, and runs under the claim that it got then.
bool is_claimed_by(const Submission::RunHere& run_here, const Execution& execution, Time now) {
  return execution.status == Status::running && execution.lease_secret == run_here.secret &&
         execution.lease_expires_at > now;
}

void claim_here(Rows& rows, const Submission::RunHere& run_here, SubmitOutcome& outcome) {
  const ExecutionId id = outcome.execution.id;
  auto execution = rows.load(id);
  if (!execution || !may_be_handed_out(*execution, rows.policies(), rows.now())) return;
  start_attempt(*execution, run_here.worker, run_here.secret, run_here.lease, rows.now());
  rows.save(*execution);
  std::erase_if(outcome.effects.ready, [&](const Changed& each) { return each.id == id; });
  outcome.execution = *std::move(execution);
  outcome.claimed = true;
}

}  // namespace

std::optional<SubmitOutcome> find_answer(Rows& rows, const Submission& submission) {
  auto answer = find_standing(rows, submission);
  if (!answer || !submission.run_here || submission.dry_run || !may_be_claimed_by(*answer)) return answer;
  if (may_be_handed_out(answer->execution, rows.policies(), rows.now())) return std::nullopt;
  answer->claimed = is_claimed_by(*submission.run_here, answer->execution, rows.now());
  return answer;
}

SubmitOutcome submit(Rows& rows, const Submission& submission) {
  if (auto answer = find_answer(rows, submission)) return *std::move(answer);
  SubmitOutcome outcome = meet_or_create(rows, submission);
  if (submission.run_here && !submission.dry_run && may_be_claimed_by(outcome)) {
    outcome.claimed = is_claimed_by(*submission.run_here, outcome.execution, rows.now());
    if (!outcome.claimed) claim_here(rows, *submission.run_here, outcome);
  }
  return outcome;
}

SubmitOutcome created(const Submission& submission, Time now) {
  SubmitOutcome outcome;
  outcome.execution = new_execution(submission, now);
  outcome.expires_at = entry_expiry(outcome.execution, submission.idempotency_ttl);
  return outcome;
}

}  // namespace hapax::rules
