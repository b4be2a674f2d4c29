#include "core/ledger.h"

#include "core/invariant.h"

namespace hapax {

Execution execution_of(const LedgerEntry& entry) {
  invariant(entry.tombstone.has_value(), "only a purged owner is read from its tombstone");
  const Tombstone& tombstone = *entry.tombstone;
  Execution execution;
  execution.id = entry.owner;
  execution.kind = tombstone.kind;
  execution.name_space = entry.name_space;
  execution.type = tombstone.type;
  execution.queue = tombstone.queue;
  execution.input_hash = entry.input_hash;
  execution.idempotency_key = tombstone.idempotency_key;
  execution.identity = entry.identity;
  execution.status = tombstone.status;
  execution.created_at = execution.run_at = tombstone.created_at;
  execution.finished_at = tombstone.finished_at;
  return execution;
}

std::optional<Time> dies_at(const LedgerEntry& entry, const Execution* owner, Duration retention) {
  if (entry.expires_at) return entry.expires_at;
  if (owner && !is_closed(owner->status)) return {};
  if (owner) {
    invariant(owner->finished_at.has_value(), "a closed owner has an end");
    return *owner->finished_at + retention;
  }
  return entry.created_at;  // purged without a TTL: nothing holds it
}

bool is_live(const LedgerEntry& entry, const Execution* owner, Duration retention, Time now) {
  if (owner && !is_closed(owner->status)) return true;
  const std::optional<Time> end = dies_at(entry, owner, retention);
  return !end || now < *end;
}

}  // namespace hapax
