#include "sdk/run_cache.h"

#include <utility>

namespace hapax::detail {

KeptRun RunCache::take(const ExecutionId& id) {
  std::vector<KeptRun> unwound;  // after the lock: it runs the program's own code
  std::lock_guard lock(mutex_);
  unwound.swap(dropped_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? KeptRun() : remove(found->second);
}

KeptRun RunCache::take_if_waiting_only_for(const ExecutionId& id, std::int32_t step) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  const bool is_wanted = found != by_id_.end() && found->second->run->waits_only_for(step);
  return is_wanted ? remove(found->second) : KeptRun();
}

void RunCache::now_certain(const LeaseToken& last_turn) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(last_turn.execution);
  if (found != by_id_.end() && found->second->last_turn == last_turn) found->second->is_certain = true;
}

void RunCache::put(KeptRun run) {
  const ExecutionId id = run.last_turn.execution;
  std::vector<KeptRun> unwound;
  std::lock_guard lock(mutex_);
  unwound.swap(dropped_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) unwound.push_back(remove(found->second));
  if (capacity_ == 0) {
    unwound.push_back(std::move(run));
    return;
  }
  if (runs_.size() == capacity_) unwound.push_back(remove(std::prev(runs_.end())));
  runs_.push_front(std::move(run));
  by_id_.emplace(id, runs_.begin());
}

void RunCache::drop(const ExecutionId& id) {
  std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) dropped_.push_back(remove(found->second));
}

void RunCache::drop(KeptRun run) {
  std::lock_guard lock(mutex_);
  dropped_.push_back(std::move(run));
}

std::size_t RunCache::size() const {
  std::lock_guard lock(mutex_);
  return runs_.size();
}

KeptRun RunCache::remove(Runs::iterator run) {
  KeptRun removed = std::move(*run);
  by_id_.erase(removed.last_turn.execution);
  runs_.erase(run);
  return removed;
}

}  // namespace hapax::detail
