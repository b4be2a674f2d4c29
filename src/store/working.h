// Working: claiming, keeping leases, reporting. Part of Store: see store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/execution.h"
#include "core/lease.h"
#include "core/report.h"
#include "core/worker_info.h"
#include "store/effects.h"
#include "store/waiting_claims.h"

namespace hapax {

struct Extension {
  LeaseToken token;
  Duration lease{60'000};       // of no length: the attempt is given back, as if it had never been claimed
  std::string name_space = {};  // the caller's: the lease of another is lost; empty: of any
  std::optional<std::string> progress = std::nullopt;  // JSON; the last one counts
  std::vector<std::string> log = {};                   // more lines for the attempt's log: see core/notes.h
};

struct ExtendOutcome {
  bool ok = false;
  bool cancel_requested = false;
  std::optional<Time> lease_expires_at;
  Effects effects;  // of giving back: it is claimable again, or closed if it was to be cancelled

  bool operator==(const ExtendOutcome&) const = default;
};

struct FinishOutcome {
  bool accepted = false;             // false: the lease is lost, nothing changed
  Status status = Status::failed;    // where accepted: after the report
  std::string name_space, queue;     // where accepted
  std::optional<Time> run_at;        // where it is pending again
  bool had_concurrency_key = false;  // another of its key may run now
  bool snoozed = false;              // it costs no attempt
  std::optional<Execution> purged;   // where closing it deleted it: what it was
  Effects effects;                   // on workflows that waited for it

  bool operator==(const FinishOutcome&) const = default;
};

class StoreWorking {
 public:
  virtual ~StoreWorking() = default;

  // Hands out pending executions whose time has come, within the limits of their queues.
  virtual std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) = 0;

  // Keeps what these workers say of themselves, in the place of what was known of each.
  virtual void announce(std::span<const WorkerInfo> workers) = 0;

  virtual std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) = 0;
  // A report that closed an execution is recognised for kReportMemory, even if the execution is deleted by then.
  virtual std::vector<FinishOutcome> finish(std::span<const Report> reports, WaitingClaims& waiters) = 0;
  std::vector<FinishOutcome> finish(std::span<const Report> reports) {
    WaitingClaims none;
    return finish(reports, none);
  }
};

}  // namespace hapax
