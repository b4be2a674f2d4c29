// Claims: the request, the outcome, and claims that wait for something to hand out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/execution.h"
#include "core/lease.h"
#include "core/time.h"
#include "core/workflow.h"

namespace hapax {

struct ClaimRequest {
  std::string name_space;
  std::vector<std::string> queues;      // without repetition
  bool tasks = true;                    // what to hand out: tasks,
  bool workflows = false;               // turns of workflows, or both
  std::vector<std::string> types = {};  // only of these; without repetition; empty: of any
  std::int32_t limit = 1;
  std::string worker;
  Duration lease{60'000};
  LeaseSecret secret;  // all its leases carry it; fresh, unless the claim is repeatable
  // The secret is that of a claim_id: what was claimed under it before and still runs is handed out again, and nothing
  // else with it.
  bool repeatable = false;
};

struct ClaimOutcome {
  std::vector<Execution> executions;  // running now, highest priority first, then run_at, then id
  // For each workflow among them, in order: the events that its last turn did not know (those after run.seen).
  std::vector<std::vector<Event>> events;
  // If fewer than the limit were found: when the clock alone may make more claimable. Absent: only a change will.
  std::optional<Time> next_at;
  bool more = false;  // it ended early, at kPageBytes or with what was handed out before: the rest is claimable now

  bool operator==(const ClaimOutcome&) const = default;
};

// Waiting claims. A verb may hand them what it makes claimable, in the same commit, where no limits apply: no limit of
// the queue, no concurrency key. Saves the waiter a claim.
struct WaitingClaims {
  std::vector<ClaimRequest> requests;
  // Adds more waiting claims that want one of these. Called within the transaction, when the candidates are known, so
  // that few claims are lent at a time. Absent: there are no more.
  std::function<void(const std::vector<Execution*>& candidates)> more;
  std::vector<ClaimOutcome> outcomes;  // one for each request that was handed something; without next_at

  bool may_be_any() const { return !requests.empty() || more; }
};

}  // namespace hapax
