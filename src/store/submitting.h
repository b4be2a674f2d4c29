// Submitting. Part of Store: see store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/execution.h"
#include "core/reuse.h"
#include "store/effects.h"
#include "store/waiting_claims.h"

namespace hapax {

struct Submission {
  // Its sender runs it: where it is claimable now and no limits apply, it is claimed in the same commit.
  struct RunHere {
    std::string worker;
    Duration lease{60'000};
    LeaseSecret secret;  // the same whenever this submission comes again, which then gets the same claim
  };

  Execution execution;  // complete, except created_at and run_at; pending; with its own id
  Reuse reuse = Reuse::allow_failed;
  std::optional<Duration> idempotency_ttl;
  std::optional<Time> run_at;        // absent: now
  Duration delay{};                  // added to now where run_at is absent
  std::optional<Duration> deadline;  // from creation; unless the execution has a deadline_at
  bool dry_run = false;              // answer as if, change nothing
  bool brief = false;                // of a batch: see answer_budget.h
  std::optional<RunHere> run_here;   // not for workflows and steps
};

struct SubmitOutcome {
  enum class Kind : std::uint8_t {
    created,
    duplicate,
    conflict,
    id_taken  // by an execution of another namespace, about which nothing is revealed
  };

  Kind kind = Kind::created;  // `created` also for one that comes again under its id
  Execution execution;        // the new one, or the owner of the identity, which may be damaged
  bool purged = false;        // only a tombstone of the owner is left: `execution` has no input, result or attempts
  bool claimed = false;       // by its `run_here`: `execution` is running, under its lease
  bool omitted = false;  // `execution` is without input, result, error and attempts: the answers to a batch are bounded
  std::optional<Time> expires_at;         // of the ledger entry, as far as known
  std::optional<ExecutionId> superseded;  // the owner that was superseded
  Effects effects;                        // of cancelling it

  bool operator==(const SubmitOutcome&) const = default;
};

class StoreSubmitting {
 public:
  virtual ~StoreSubmitting() = default;

  // Creates executions, or finds the ones that stand for them. A submission whose id exists is answered as created, and
  // what was handed out as it was created: pending.
  virtual std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) = 0;
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions) {
    WaitingClaims none;
    return submit(submissions, none);
  }
};

}  // namespace hapax
