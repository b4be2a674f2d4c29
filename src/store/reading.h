// Reading. Part of Store: see store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/execution.h"
#include "core/ledger.h"
#include "core/why.h"
#include "core/worker_info.h"
#include "core/workflow.h"
#include "store/page.h"

namespace hapax {

struct ListFilter {
  std::string name_space;
  Kind kind = Kind::task;
  std::optional<std::string> queue, type, idempotency_key;
  std::optional<Status> status;
  std::optional<ExecutionId> parent;
  std::optional<ExecutionId> before;  // the cursor: only executions with a smaller id
  std::int32_t limit = 100;
};

struct QueueCount {
  std::string name_space, queue;
  std::int64_t pending = 0;  // claimable or delayed
  std::int64_t running = 0;
  std::optional<Time> oldest_run_at;  // of the pending ones

  bool operator==(const QueueCount&) const = default;
};

struct FoundIdentity {
  LedgerEntry entry;
  std::optional<Execution> owner;  // absent: purged, the entry has its tombstone
  bool live = false;
  std::optional<Time> expires_at;

  bool operator==(const FoundIdentity&) const = default;
};

// A part of a walk over everything that is stored.
struct Inspection {
  std::int64_t checked = 0;           // executions, and what else has a place of its own
  std::vector<std::string> findings;  // what is damaged
  std::string next;                   // where the next part begins; empty: that was all
};

// The owner of an identity, for a submission that is about to be made.
struct OwnerQuery {
  NamedScope scope;
  IdentityHash hash;
  ExecutionId submission;
};

class StoreReading {
 public:
  virtual ~StoreReading() = default;

  // Read only; may run beside everything above. What is damaged is never given back: Failure::corrupt, or an entry
  // among a page's damaged ones; a claim passes over it.
  virtual std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) = 0;
  virtual std::vector<std::optional<Execution>> find_all(const std::string& name_space,
                                                         std::span<const ExecutionId> ids) {
    std::vector<std::optional<Execution>> found;
    for (const ExecutionId& id : ids) found.push_back(find(name_space, id));
    return found;
  }
  // Costs what its namespace has, whatever the others have. Ends early where kPageBytes are reached.
  virtual Page list(const ListFilter& filter) = 0;
  // Every queue that was ever used, with what is open in it; of one namespace, or of all.
  virtual std::vector<QueueCount> count(const std::optional<std::string>& name_space = std::nullopt) = 0;
  // Of a run, those after that one, oldest first. Ends early where kPageBytes are reached; none: there are no more.
  virtual std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) = 0;
  // What holds it back now, by rules/why.h. One read, whose cost does not grow with what else is stored.
  virtual std::optional<Why> why(const std::string& name_space, const ExecutionId& id) = 0;
  // Who announced itself and is not forgotten, by name.
  virtual std::vector<WorkerInfo> workers(const std::string& name_space) = 0;
  virtual std::optional<FoundIdentity> find_identity(const IdentityHash& hash) = 0;
  // The same, where the identity's scope is known: a store that keeps the ledger by scopes need not look through all of
  // them.
  virtual std::optional<FoundIdentity> find_identity_in(const NamedScope&, const IdentityHash& hash) {
    return find_identity(hash);
  }

  // The owner that the ledger names for each identity, whether its entry is live or not. Nothing if there is no entry,
  // if the owner was purged, or if the submission was made before. As fresh as a submission's own read; for caches.
  virtual std::vector<std::optional<ExecutionId>> owners(std::span<const OwnerQuery> queries) {
    std::vector<std::optional<ExecutionId>> owners;
    for (const OwnerQuery& query : queries) {
      const std::optional<FoundIdentity> found = find_identity_in(query.scope, query.hash);
      const bool made_before = found && find(found->entry.name_space, query.submission);
      owners.push_back(found && found->owner && !made_before ? std::optional(found->entry.owner) : std::nullopt);
    }
    return owners;
  }

  // Reads everything once, in parts of about `limit` executions: `from` is empty at first, then what the last part gave
  // as next. Changes nothing. Nothing to do for a store that keeps nothing.
  virtual Inspection inspect(const std::string& /*from*/, std::int32_t /*limit*/) { return {}; }
};

}  // namespace hapax
