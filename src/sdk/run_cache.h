// The workflow runs that a worker keeps in memory while they wait: at most this many, the latest ones.
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
  // False for a run that was told the end of a step before its commit: only the turn that follows may use it, and is
  // refused along with it.
  bool is_certain = true;
};

class RunCache {
 public:
  explicit RunCache(std::size_t capacity) : capacity_(capacity) {}

  // Takes the run out of the cache, if it is there.
  KeptRun take(const ExecutionId& id);

  // The same if its code waits for this step alone.
  KeptRun take_if_waiting_only_for(const ExecutionId& id, std::int32_t step);

  // Its last turn was accepted: everything it was told is committed.
  void now_certain(const LeaseToken& last_turn);

  // Keeps it, replacing the least recently used one if there is no room.
  void put(KeptRun run);

  // Drops it. Quick: the next take() or put() unwinds its stack.
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
