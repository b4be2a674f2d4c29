// Sweeping and purging. Part of Store: see store.h.
#pragma once

#include <cstdint>

#include "store/effects.h"

namespace hapax {

struct SweepOutcome {
  Effects effects;    // next_due: of what remains, if nothing more is due now
  bool more = false;  // the limit was reached

  bool operator==(const SweepOutcome&) const = default;
};

struct PurgeOutcome {
  std::int64_t executions = 0;
  std::int64_t identities = 0;
  std::int64_t requests = 0;
  bool more = false;
  bool more_reports = false;  // of those kept for kReportMemory; not compared: each store forgets them at its own pace

  bool operator==(const PurgeOutcome& other) const {
    return executions == other.executions && identities == other.identities && requests == other.requests &&
           more == other.more;
  }
};

class StoreCleaning {
 public:
  virtual ~StoreCleaning() = default;

  // Ends what has become due, oldest first, at most `limit` of them.
  virtual SweepOutcome sweep(std::int32_t limit) = 0;

  // Deletes, at most `limit` of each: closed executions past their retention, dead ledger entries, old request keys,
  // and reports too old to be repeated. A ledger entry with time left becomes a tombstone.
  virtual PurgeOutcome purge(std::int32_t limit) = 0;
  // Of these the request keys alone: how many were deleted.
  virtual std::int64_t purge_requests(std::int32_t limit) = 0;
};

}  // namespace hapax
