#include "core/transition.h"
#include "store/memory/verbs.h"

namespace hapax::memory {
namespace {

using Kind = ControlOutcome::Kind;

ControlOutcome cancel(Tables& tables, const Execution& target, Time now) {
  const ExecutionId id = target.id;
  const Duration grace = tables.policies->of(target.name_space, target.queue).cancel_grace;
  ControlOutcome outcome;
  outcome.queue = target.queue;
  outcome.changed = tables.change(id, [&](Execution& execution) { return request_cancel(execution, grace, now); });
  outcome.status = tables.find(id)->status;
  outcome.closed = outcome.changed && is_closed(outcome.status);
  if (outcome.closed) tables.purge_if_unretained(id, now);
  return outcome;
}

// Makes the execution the owner of its identity again. What the entry had as its expiry stays.
void take_identity(Tables& tables, const Execution& execution) {
  LedgerEntry& entry = tables.ledger[execution.identity->hash];
  entry.identity = *execution.identity;
  entry.name_space = execution.name_space;
  entry.owner = execution.id;
  entry.input_hash = execution.input_hash;
  entry.created_at = execution.created_at;
  entry.tombstone.reset();
}

ControlOutcome retry(Tables& tables, const Execution& target, Time now) {
  const ExecutionId id = target.id;
  ControlOutcome outcome;
  outcome.status = target.status;
  Execution retried = target;
  if (!retry_closed(retried, now)) {
    outcome.kind = Kind::not_retryable;
    return outcome;
  }
  if (target.identity) {
    const auto entry = tables.ledger.find(target.identity->hash);
    if (entry != tables.ledger.end() && entry->second.owner != id && tables.is_live(entry->second, now)) {
      outcome.kind = Kind::identity_taken;
      outcome.other = entry->second.owner;
      return outcome;
    }
    take_identity(tables, target);
  }
  tables.change(id, [&](Execution& execution) { execution = retried; });
  outcome.changed = true;
  outcome.status = retried.status;
  outcome.queue = retried.queue;
  return outcome;
}

ControlOutcome run(Tables& tables, const ControlRequest& request, Time now) {
  const Execution* target = tables.find(request.name_space, request.target);
  if (!target) {
    ControlOutcome outcome;
    outcome.kind = Kind::not_found;
    return outcome;
  }
  return request.action == ControlRequest::Action::cancel ? cancel(tables, *target, now) : retry(tables, *target, now);
}

ControlOutcome answer_again(const StoredRequest& stored, const ControlRequest& request) {
  ControlOutcome outcome;
  if (stored.action != request.action || stored.target != request.target) {
    outcome.kind = Kind::key_conflict;
    return outcome;
  }
  outcome.status = stored.outcome.status;
  if (stored.outcome.kind != Kind::done) {
    outcome.kind = Kind::failed_before;
    outcome.before = stored.outcome.kind;
    outcome.other = stored.outcome.other;
    return outcome;
  }
  outcome.replayed = true;
  outcome.changed = stored.outcome.changed;
  return outcome;
}

}  // namespace

ControlOutcome control(Tables& tables, const ControlRequest& request, Time now) {
  const std::pair key(request.name_space, request.request_key);
  const auto stored = tables.requests.find(key);
  if (stored != tables.requests.end() && stored->second.expires_at > now) return answer_again(stored->second, request);

  const ControlOutcome outcome = run(tables, request, now);
  tables.requests.insert_or_assign(key,
                                   StoredRequest{request.action, request.target, outcome, now + request.request_ttl});
  return outcome;
}

}  // namespace hapax::memory
