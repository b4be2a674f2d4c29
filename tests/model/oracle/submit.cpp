// Spec 2: what a submission meets.
#include "model/oracle/world.h"

namespace hapax::oracle {

namespace {

enum class Meets { duplicate, create_new, cancel_and_create };

// Spec 2.4, the table of what a duplicate gets.
Meets what_it_meets(Status owner, Reuse reuse) {
  constexpr Meets kDuplicate = Meets::duplicate, kNew = Meets::create_new, kCancel = Meets::cancel_and_create;
  struct Line {
    Status owner;
    Meets allow_failed, reject, allow_closed, replace;
  };
  static constexpr Line kTable[] = {
      {Status::pending, kDuplicate, kDuplicate, kDuplicate, kCancel},
      {Status::running, kDuplicate, kDuplicate, kDuplicate, kCancel},
      {Status::suspended, kDuplicate, kDuplicate, kDuplicate, kCancel},
      {Status::completed, kDuplicate, kDuplicate, kNew, kNew},
      {Status::failed, kNew, kDuplicate, kNew, kNew},
      {Status::cancelled, kNew, kDuplicate, kNew, kNew},
      {Status::timed_out, kNew, kDuplicate, kNew, kNew},
  };
  for (const Line& line : kTable) {
    if (line.owner != owner) continue;
    if (reuse == Reuse::allow_failed) return line.allow_failed;
    if (reuse == Reuse::reject) return line.reject;
    if (reuse == Reuse::allow_closed) return line.allow_closed;
    return line.replace;
  }
  return kDuplicate;
}

// Spec 2.4, fingerprint first. Only a caller's key can meet another input.
bool has_other_fingerprint(const Execution& sent, const Execution& owner) {
  if (sent.type != owner.type) return true;
  return sent.identity->strategy == Strategy::caller_provided && sent.input_hash != owner.input_hash;
}

// Spec 2.5: id, status, times, input_hash.
Execution from_tombstone(const LedgerEntry& entry) {
  const Tombstone& tombstone = entry.tombstone.value();
  Execution execution;
  execution.id = entry.owner;
  execution.name_space = entry.name_space;
  execution.identity = entry.identity;
  execution.input_hash = entry.input_hash;
  execution.kind = tombstone.kind;
  execution.type = tombstone.type;
  execution.queue = tombstone.queue;
  execution.idempotency_key = tombstone.idempotency_key;
  execution.status = tombstone.status;
  execution.created_at = tombstone.created_at;
  execution.run_at = tombstone.created_at;
  execution.finished_at = tombstone.finished_at;
  return execution;
}

SubmitOutcome describe_owner(World& world, const LedgerEntry& entry) {
  SubmitOutcome outcome;
  const Execution* owner = world.owner_of(entry);
  outcome.execution = owner ? *owner : from_tombstone(entry);
  outcome.purged = !owner;
  outcome.expires_at = world.dies_at(entry);
  return outcome;
}

// Spec 2.1: a submission that comes again under its id is the same submission, for as long as its execution or its
// trace is kept.
std::optional<SubmitOutcome> find_first_answer(World& world, const Execution& sent) {
  const auto entry_of = [&](const std::optional<Identity>& identity) -> const LedgerEntry* {
    if (!identity) return nullptr;
    const auto found = world.ledger.find(identity->hash);
    return found != world.ledger.end() && found->second.owner == sent.id ? &found->second : nullptr;
  };
  const Execution* stored = world.find(sent.id);
  const LedgerEntry* own = entry_of(stored ? stored->identity : sent.identity);
  if (!stored && !own) return std::nullopt;
  SubmitOutcome first;
  if (own) {
    first = describe_owner(world, *own);
  } else {
    first.execution = *stored;
  }
  first.superseded = first.execution.superseded;
  if (sent.parent) return first;  // the step of a run: its id is its name
  if (first.execution.name_space != sent.name_space) {
    SubmitOutcome taken;
    taken.kind = SubmitOutcome::Kind::id_taken;
    return taken;
  }
  const bool is_same = first.execution.kind == sent.kind && first.execution.type == sent.type &&
                       first.execution.input_hash == sent.input_hash;
  if (!is_same) first.kind = SubmitOutcome::Kind::conflict;
  return first;
}

SubmitOutcome create(World& world, const Submission& submission, const std::optional<ExecutionId>& superseded) {
  SubmitOutcome outcome;
  Execution& created = outcome.execution;
  created = submission.execution;
  created.created_at = world.now;
  created.run_at = submission.run_at ? *submission.run_at : world.now + submission.delay;
  if (!created.deadline_at && submission.deadline) created.deadline_at = world.now + *submission.deadline;
  created.attempt_limit = created.max_attempts;
  created.superseded = superseded;
  outcome.superseded = superseded;
  if (created.identity && submission.idempotency_ttl) outcome.expires_at = world.now + *submission.idempotency_ttl;
  if (submission.dry_run) return outcome;

  world.executions[created.id] = created;
  if (!created.identity) return outcome;
  LedgerEntry& entry = world.ledger[created.identity->hash];
  entry = LedgerEntry();
  entry.identity = *created.identity;
  entry.name_space = created.name_space;
  entry.owner = created.id;
  entry.input_hash = created.input_hash;
  entry.created_at = created.created_at;
  entry.expires_at = outcome.expires_at;
  return outcome;
}

SubmitOutcome decide_and_do(World& world, const Submission& submission) {
  const Execution& sent = submission.execution;
  if (auto first = find_first_answer(world, sent)) return *first;
  if (!sent.identity) return create(world, submission, std::nullopt);
  const auto found = world.ledger.find(sent.identity->hash);
  if (found == world.ledger.end() || !world.is_live(found->second)) return create(world, submission, std::nullopt);

  const LedgerEntry entry = found->second;
  const SubmitOutcome owner = describe_owner(world, entry);
  switch (what_it_meets(owner.execution.status, submission.reuse)) {
    case Meets::duplicate: {
      SubmitOutcome outcome = owner;
      const bool conflicts = has_other_fingerprint(sent, owner.execution);
      outcome.kind = conflicts ? SubmitOutcome::Kind::conflict : SubmitOutcome::Kind::duplicate;
      return outcome;
    }
    case Meets::create_new: return create(world, submission, entry.owner);
    case Meets::cancel_and_create: break;
  }
  Effects effects;
  if (!submission.dry_run) {
    Execution& active = world.executions.at(entry.owner);
    world.request_cancel(active);
    if (is_closed(active.status)) world.settle(entry.owner, effects);
  }
  SubmitOutcome outcome = create(world, submission, entry.owner);
  outcome.effects = effects;
  return outcome;
}

}  // namespace

// Spec 2.5: an active execution always holds its identity; after that the TTL counts from creation, and without one
// the entry lives until the retention of its owner ends.
std::optional<Time> World::dies_at(const LedgerEntry& entry) {
  if (entry.expires_at) return entry.expires_at;
  const Execution* owner = owner_of(entry);
  if (!owner) return entry.created_at;
  if (!is_closed(owner->status)) return std::nullopt;
  return *owner->finished_at + retention(owner->name_space, owner->queue, owner->kind);
}

bool World::is_live(const LedgerEntry& entry) {
  const Execution* owner = owner_of(entry);
  if (owner && !is_closed(owner->status)) return true;
  const std::optional<Time> end = dies_at(entry);
  return end && now < *end;
}

// Makes the execution the owner of its identity. A TTL that the entry had goes on.
void World::give_identity(const Execution& execution) {
  LedgerEntry& entry = ledger[execution.identity->hash];
  entry.identity = *execution.identity;
  entry.name_space = execution.name_space;
  entry.owner = execution.id;
  entry.input_hash = execution.input_hash;
  entry.created_at = execution.created_at;
  entry.tombstone.reset();
}

// Spec 3, submit and run here. What comes again finds the claim that it got, while its lease lasts.
void World::claim_here(const Submission& submission, SubmitOutcome& outcome) {
  const Submission::RunHere& here = *submission.run_here;
  Execution* execution = find(outcome.execution.id);
  if (submission.dry_run || outcome.purged || !execution) return;
  if (outcome.kind != SubmitOutcome::Kind::created && outcome.kind != SubmitOutcome::Kind::duplicate) return;
  if (may_be_handed_out(*execution)) start(*execution, here.worker, here.secret, here.lease);
  outcome.execution = *execution;
  outcome.claimed = execution->status == Status::running && execution->lease_secret == here.secret &&
                    now < *execution->lease_expires_at;
}

SubmitOutcome World::submit(const Submission& submission) {
  SubmitOutcome outcome = decide_and_do(*this, submission);
  if (submission.run_here) claim_here(submission, outcome);
  if (submission.brief && outcome.kind == SubmitOutcome::Kind::conflict && !outcome.purged) {
    Execution& other = outcome.execution;  // a conflict never tells the other's payload
    other.input.clear();
    other.result.reset();
    other.error.reset();
    other.failed_attempts.clear();
  }
  return outcome;
}

}  // namespace hapax::oracle
