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
};

class RunCache {
 public:
  explicit RunCache(std::size_t capacity) : capacity_(capacity) {}

  // The run, if it is kept; from now on it is the caller's.
  KeptRun take(const ExecutionId& id);

  // Keeps it, in place of the one that was used longest ago if there is no room.
  void put(KeptRun run);

  // Keeps it no longer. Quick: its stack is unwound by the next take() or put().
  void drop(const ExecutionId& id);

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
