// Who is claimed next: the order of claims, and what the limits of a queue let through. A store offers the candidates
// of each queue in order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "core/policy.h"
#include "core/rate.h"
#include "store/store.h"

namespace hapax {

inline void keep_earliest(std::optional<Time>& earliest, const std::optional<Time>& time) {
  if (time && (!earliest || *time < *earliest)) earliest = time;
}

namespace rules {

// Whether a claim that is said again was handed this before, and still holds it.
bool was_handed(const ClaimRequest& request, const Execution& execution, Time now);

// A place in the order of claims: highest priority first, then run_at, then id.
struct Rank {
  std::int32_t priority = 0;
  Time run_at;
  ExecutionId id;

  bool goes_before(const Rank& other) const {
    return std::tie(other.priority, run_at, id) < std::tie(priority, other.run_at, other.id);
  }
};

inline Rank rank_of(const Execution& execution) { return {execution.priority, execution.run_at, execution.id}; }

// Of these queues, the one whose next candidate goes first; null if none has any. A queue has next_rank(): the rank of
// the first candidate that its limits let through.
template <class Queue>
Queue* first_of(const std::vector<Queue*>& queues) {
  Queue* first = nullptr;
  std::optional<Rank> best;
  for (Queue* queue : queues) {
    const std::optional<Rank> rank = queue->next_rank();
    if (!rank || (best && !rank->goes_before(*best))) continue;
    first = queue;
    best = rank;
  }
  return first;
}

// The limits that apply to executions of that kind in a queue: a turn of a workflow is no task, and has none. Null: the
// queue is paused.
const QueuePolicy* limits_of(const QueuePolicies& policies, const std::string& name_space, const std::string& queue,
                             Kind kind);

// The next sweep times it out.
inline bool is_past_deadline(const Execution& execution, Time now) {
  return execution.deadline_at && *execution.deadline_at <= now;
}

// How many of a queue ran before this claim took any.
class RunningCounts {
 public:
  virtual ~RunningCounts() = default;
  virtual std::int64_t running() = 0;                             // asked only where the policy has max_running
  virtual std::int64_t running_with(const std::string& key) = 0;  // a concurrency key
};

// What the limits of one queue let through, during one transaction.
class QueueLimits {
 public:
  enum class Verdict : std::uint8_t {
    go,
    key_is_full,    // another key may go
    queue_is_full,  // nothing more goes
    out_of_rate     // nothing more goes, until next_permit()
  };

  QueueLimits(const QueuePolicy& policy, RunningCounts& counts, Time now, RateState rate = {})
      : policy_(policy), counts_(counts), now_(now), rate_(rate) {}

  // Of a candidate with that concurrency key, if it has one.
  Verdict judge(const std::optional<std::string>& key);
  void take(const std::optional<std::string>& key);  // one for which judge() said go

  bool any_taken() const { return taken_ > 0; }
  bool any_taken_with_key() const { return !taken_by_key_.empty(); }

  // The bucket of the rate limit. It may change even where nothing goes: then the limit has changed.
  void set_rate(const RateState& rate) { rate_ = rate; }
  const RateState& rate() const { return rate_; }
  bool rate_changed() const { return rate_changed_; }
  bool held_by_rate() const { return held_by_rate_; }
  std::optional<Time> next_permit() const;  // where the last one was held by the rate

 private:
  bool is_out_of_rate();

  const QueuePolicy& policy_;
  RunningCounts& counts_;
  const Time now_;
  RateState rate_;
  bool rate_changed_ = false, held_by_rate_ = false;
  std::int64_t taken_ = 0;
  std::map<std::string, std::int64_t> taken_by_key_;
};

}  // namespace rules
}  // namespace hapax
