// The ledger of identities: who owns a key, and until when.
#pragma once

#include <optional>
#include <string>

#include "core/execution.h"

namespace hapax {

// What remains of a purged owner while its key is still reserved.
struct Tombstone {
  Kind kind = Kind::task;
  std::string type;
  std::string queue;
  std::optional<std::string> idempotency_key;
  Status status = Status::completed;
  Time created_at;
  Time finished_at;

  bool operator==(const Tombstone&) const = default;
};

struct LedgerEntry {
  Identity identity;
  std::string name_space;
  ExecutionId owner;
  InputHash input_hash;
  Time created_at;
  std::optional<Time> expires_at;  // by a TTL; absent: lives as long as the owner
  std::optional<Tombstone> tombstone;

  bool operator==(const LedgerEntry&) const = default;
};

// The known part of a purged owner. For an entry with a tombstone.
Execution execution_of(const LedgerEntry& entry);

// When the entry dies, given its owner (null if purged) and the retention of the owner's queue: by its TTL, or with the
// owner. Absent: not known yet. An open owner holds its identity even beyond that.
std::optional<Time> dies_at(const LedgerEntry& entry, const Execution* owner, Duration retention);

// Whether the entry is live. An expired entry is dead even before cleanup.
bool is_live(const LedgerEntry& entry, const Execution* owner, Duration retention, Time now);

}  // namespace hapax
