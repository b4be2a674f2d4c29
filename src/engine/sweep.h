// What the clock brings: leases, timeouts and deadlines that end, and closed executions whose retention is over.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "engine/timer.h"
#include "store/store.h"

namespace hapax {

class Sweeper {
 public:
  // Runs on a timer of its own thread. `swept` hears what each sweep closed and made claimable.
  // The run ledger of activities is kept for `run_retention`.
  Sweeper(Store& store, Timer& timer, Duration cleanup_interval, Duration run_retention,
          std::function<void(const Effects&)> swept);

  void start();

  // Something ends then: a sweep must come by no later.
  void due_by(Time time);

  std::int64_t swept() const { return swept_count_; }
  std::int64_t purged() const { return purged_count_; }
  std::int64_t failures() const { return failures_; }

 private:
  void sweep();
  void purge();
  void schedule(std::optional<Time> next_due);

  Store& store_;
  Timer& timer_;
  const Duration cleanup_interval_, run_retention_;
  const std::function<void(const Effects&)> swept_;
  std::mutex mutex_;
  std::optional<Timer::Key> next_sweep_;
  std::atomic<std::int64_t> swept_count_ = 0, purged_count_ = 0, failures_ = 0;
};

}  // namespace hapax
