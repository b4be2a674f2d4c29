#include "sdk/run_cache.h"

#include <utility>

namespace hapax::detail {

std::unique_ptr<WorkflowRun> RunCache::take(const ExecutionId& id) {
  std::vector<std::unique_ptr<WorkflowRun>> unwound;  // after the lock: that runs code of the program's own
  std::lock_guard lock(mutex_);
  unwound.swap(dropped_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : remove(found->second);
}

void RunCache::put(const ExecutionId& id, std::unique_ptr<WorkflowRun> run) {
  std::vector<std::unique_ptr<WorkflowRun>> unwound;
  std::lock_guard lock(mutex_);
  unwound.swap(dropped_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) unwound.push_back(remove(found->second));
  if (capacity_ == 0) {
    unwound.push_back(std::move(run));
    return;
  }
  if (runs_.size() == capacity_) unwound.push_back(remove(std::prev(runs_.end())));
  runs_.emplace_front(id, std::move(run));
  by_id_.emplace(id, runs_.begin());
}

void RunCache::drop(const ExecutionId& id) {
  std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) dropped_.push_back(remove(found->second));
}

std::size_t RunCache::size() const {
  std::lock_guard lock(mutex_);
  return runs_.size();
}

std::unique_ptr<WorkflowRun> RunCache::remove(Runs::iterator run) {
  std::unique_ptr<WorkflowRun> removed = std::move(run->second);
  by_id_.erase(run->first);
  runs_.erase(run);
  return removed;
}

}  // namespace hapax::detail
