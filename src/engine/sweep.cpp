#include "engine/sweep.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace hapax {

namespace {

constexpr std::int32_t kSweepLimit = 500;
constexpr std::int32_t kPurgeLimit = 500;

// Another server's leases end without notice to this one, so it sweeps at least this often.
constexpr Duration kLongestPause{1000};

// Between two batches of a cleanup, so that claims and submissions go first.
constexpr Duration kPurgePause{5};

}  // namespace

Sweeper::Sweeper(Store& store, Timer& timer, const Options& options, std::function<void(const Effects&)> swept)
    : store_(store), timer_(timer), options_(options), swept_(std::move(swept)) {}

void Sweeper::start() {
  timer_.soon([this] { sweep(); });
  timer_.after(std::min(options_.cleanup_interval, kLongestPause), [this] { purge(); });
}

void Sweeper::due_by(Time time) {
  const auto delay = std::max(Duration(0), time - store_.now());
  if (delay >= kLongestPause) return;
  const auto instant = std::chrono::steady_clock::now() + delay;
  std::lock_guard lock(mutex_);
  if (next_sweep_ && (next_sweep_->first <= instant || !timer_.cancel(*next_sweep_))) return;
  next_sweep_ = timer_.at(instant, [this] { sweep(); });
}

void Sweeper::schedule(std::optional<Time> next_due) {
  auto delay = kLongestPause;
  if (next_due) delay = std::clamp(*next_due - store_.now(), Duration(0), kLongestPause);
  std::lock_guard lock(mutex_);
  if (next_sweep_) timer_.cancel(*next_sweep_);
  next_sweep_ = timer_.after(delay, [this] { sweep(); });
}

void Sweeper::sweep() {
  std::optional<Time> next_due;
  try {
    SweepOutcome outcome = store_.sweep(kSweepLimit);
    swept_count_ += static_cast<std::int64_t>(outcome.effects.closed.size() + outcome.effects.ready.size());
    next_due = outcome.more ? store_.now() : std::exchange(outcome.effects.next_due, std::nullopt);
    swept_(outcome.effects);
  } catch (const std::exception& failure) {
    ++failures_;
    spdlog::warn("sweep: {}", failure.what());
  }
  schedule(next_due);
}

void Sweeper::purge() {
  Duration pause = options_.cleanup_interval;
  try {
    const PurgeOutcome outcome = store_.purge(kPurgeLimit);
    purged_count_ += outcome.executions;
    const std::int64_t runs = store_.activities().purge_runs(store_.now() - options_.run_retention, kPurgeLimit);
    if (outcome.more || outcome.more_reports || runs == kPurgeLimit) pause = kPurgePause;
  } catch (const std::exception& failure) {
    ++failures_;
    spdlog::warn("cleanup: {}", failure.what());
  }
  timer_.after(pause, [this] { purge(); });
}

void Sweeper::clean_requests() {
  const Timer::Instant now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (requests_cleaned_at_ && now - *requests_cleaned_at_ < options_.request_cleanup_interval) return;
    requests_cleaned_at_ = now;
  }
  timer_.soon([this] { purge_requests(); });
}

void Sweeper::purge_requests() {
  try {
    if (store_.purge_requests(kPurgeLimit) < kPurgeLimit) return;
    timer_.after(kPurgePause, [this] { purge_requests(); });
  } catch (const std::exception& failure) {
    ++failures_;
    spdlog::warn("cleanup of request keys: {}", failure.what());
  }
}

}  // namespace hapax
