// The runs of workflows that a worker keeps in memory while they wait: so many at most, the latest ones.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/lease.h"
#include "sdk/workflow_run.h"

namespace hapax::detail {

struct KeptRun {
  std::unique_ptr<WorkflowRun> run;  // null: there is none
  LeaseToken last_turn;
  // False for a run that was told of an end of a step which may not come to pass: only who goes on from there may use
  // it, whose turn is then refused along with it.
  bool is_certain = true;
};

class RunCache {
 public:
  explicit RunCache(std::size_t capacity) : capacity_(capacity) {}

  // The run, if it is kept; from now on it is the caller's.
  KeptRun take(const ExecutionId& id);

  // The same if its code waits for this step alone.
  KeptRun take_if_waiting_only_for(const ExecutionId& id, std::int32_t step);

  // The turn that was its last was accepted: whatever it was told is so.
  void now_certain(const LeaseToken& last_turn);

  // Keeps it, in place of the one that was used longest ago if there is no room.
  void put(KeptRun run);

  // Keeps it no longer. Quick: its stack is unwound by the next take() or put().
  void drop(const ExecutionId& id);
  void drop(KeptRun run);  // that was never put

  std::size_t size() const;

 private:
  using Runs = std::list<KeptRun>;

  KeptRun remove(Runs::iterator run);

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  Runs runs_;  // the latest first
  std::unordered_map<ExecutionId, Runs::iterator> by_id_;
  std::vector<KeptRun> dropped_;
};

}  // namespace hapax::detail
