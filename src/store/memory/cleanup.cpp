#include "store/memory/verbs.h"

namespace hapax::memory {

SweepOutcome sweep(Tables& tables, std::int32_t limit, Time now) {
  std::vector<ExecutionId> ids;
  for (const auto& [due_at, id] : tables.due()) {
    if (due_at > now || std::ssize(ids) >= limit) break;
    ids.push_back(id);
  }

  SweepOutcome outcome;
  for (const ExecutionId& id : ids) outcome.effects.add(end_due(tables, id, now));
  outcome.more = std::ssize(ids) >= limit;
  outcome.effects.next_due.reset();
  if (!tables.due().empty() && tables.due().begin()->first > now) {
    outcome.effects.next_due = tables.due().begin()->first;
  }
  return outcome;
}

namespace {

std::vector<ExecutionId> over_retention(const Tables& tables, std::int32_t limit, Time now) {
  std::vector<ExecutionId> ids;
  for (const auto& [group, executions] : tables.closed()) {
    const auto& [name_space, queue, kind] = group;
    const Duration retention = tables.policies->retention(name_space, queue, kind);
    for (const auto& [finished_at, id] : executions) {
      if (finished_at + retention > now || std::ssize(ids) >= limit) break;
      if (tables.may_be_purged(*tables.find(id))) ids.push_back(id);
    }
  }
  return ids;
}

// Erases what is over by now, the longest dead first.
template <class Map, class ExpiresAt>
std::int64_t erase_expired(Map& map, std::int32_t limit, Time now, ExpiresAt expires_at) {
  std::set<std::pair<Time, typename Map::key_type>> expired;
  for (const auto& [key, item] : map) {
    const std::optional<Time> end = expires_at(item);
    if (end && *end <= now) expired.emplace(*end, key);
  }
  std::int64_t erased = 0;
  for (const auto& [end, key] : expired) {
    if (erased >= limit) break;
    map.erase(key);
    ++erased;
  }
  return erased;
}

}  // namespace

std::int64_t purge_requests(Tables& tables, std::int32_t limit, Time now) {
  return erase_expired(tables.requests, limit, now,
                       [](const StoredRequest& request) { return std::optional(request.expires_at); });
}

PurgeOutcome purge(Tables& tables, std::int32_t limit, Time now) {
  PurgeOutcome outcome;
  for (const ExecutionId& id : over_retention(tables, limit, now)) {
    outcome.executions += purge(tables, id, now) ? 1 : 0;
  }
  outcome.identities = erase_expired(tables.ledger, limit, now, [](const LedgerEntry& entry) {
    return entry.tombstone ? entry.expires_at : std::nullopt;
  });
  outcome.requests = purge_requests(tables, limit, now);
  forget_workers(tables, now);
  std::erase_if(tables.reports, [&](const auto& report) { return report.second.second <= now; });
  outcome.more = outcome.executions >= limit || outcome.identities >= limit || outcome.requests >= limit;
  return outcome;
}

}  // namespace hapax::memory
