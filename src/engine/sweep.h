// Sweeps and cleanup: leases, timeouts, deadlines, and executions past their retention.
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
  struct Options {
    Duration cleanup_interval, request_cleanup_interval;
    Duration run_retention;  // of the run ledger of activities
  };

  // Runs on a timer's thread. `swept` gets what each sweep closed and made claimable.
  Sweeper(Store& store, Timer& timer, const Options& options, std::function<void(const Effects&)> swept);

  void start();

  // Now, on any thread. Sweeps may run at once.
  void sweep();

  // Something ends then: a sweep must run no later.
  void due_by(Time time);

  // A control operation has run: expired request keys are deleted soon, at most once per interval.
  void clean_requests();

  std::int64_t swept() const { return swept_count_; }
  std::int64_t purged() const { return purged_count_; }
  std::int64_t failures() const { return failures_; }

 private:
  void purge();
  void purge_requests();
  void schedule(std::optional<Time> next_due);

  Store& store_;
  Timer& timer_;
  const Options options_;
  const std::function<void(const Effects&)> swept_;
  std::mutex mutex_;
  std::optional<Timer::Key> next_sweep_;
  std::optional<Timer::Instant> requests_cleaned_at_;
  std::atomic<std::int64_t> swept_count_ = 0, purged_count_ = 0, failures_ = 0;
};

}  // namespace hapax
