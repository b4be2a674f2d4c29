#include "core/ledger.h"

namespace hapax {

std::optional<Time> dies_at(const LedgerEntry& entry, const Execution* owner, Duration retention) {
  if (owner && !is_closed(owner->status)) return {};
  if (entry.expires_at) return entry.expires_at;
  if (owner) return *owner->finished_at + retention;
  return entry.created_at;  // purged without a TTL: nothing holds it any more
}

bool is_live(const LedgerEntry& entry, const Execution* owner, Duration retention, Time now) {
  const std::optional<Time> end = dies_at(entry, owner, retention);
  return !end || now < *end;
}

}  // namespace hapax
