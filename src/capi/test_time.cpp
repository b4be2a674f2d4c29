#include "capi/test_time.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace hapax::capi {

namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr auto kLook = 200us;                // between two looks at who works
constexpr auto kPatienceWithWork = 10s;      // a task or turn that is running
constexpr auto kPatienceWithWorkers = 50ms;  // something that could be claimed, and may have no worker

void take_earlier(std::optional<Time>& earliest, const std::optional<Time>& other) {
  if (other && (!earliest || *other < *earliest)) earliest = other;
}

}  // namespace

void TestTime::advance(Duration duration) {
  const std::lock_guard lock(mutex_);
  const Time until = memory_->clock.now() + std::max(duration, Duration(0));
  let_work();
  for (auto next = next_due(); next && *next < until; next = next_due()) {
    memory_->clock.move_to(*next);
    let_work();
  }
  memory_->clock.move_to(until);
  let_work();
}

// Until nothing is running, and nothing waits that could be.
void TestTime::let_work() {
  memory_->engine->clock_moved();
  const auto began = Steady::now();
  auto last_work = began;
  for (;;) {
    bool is_running = false, is_claimable = false;
    for (const QueueCount& count : memory_->store->count()) {
      is_running = is_running || count.running > 0;
      is_claimable = is_claimable || (count.oldest_run_at && *count.oldest_run_at <= memory_->clock.now());
    }
    const auto now = Steady::now();
    if (is_running) last_work = now;
    if (!is_running && !is_claimable) return;
    if (now - began > kPatienceWithWork || now - last_work > kPatienceWithWorkers) return;
    std::this_thread::sleep_for(kLook);
  }
}

// When something happens by itself: a timer, a lease or a deadline ends, a task may run, a schedule fires.
std::optional<Time> TestTime::next_due() const {
  const Time now = memory_->clock.now();
  std::optional<Time> earliest = memory_->store->sweep(0).effects.next_due;
  take_earlier(earliest, memory_->store->activities().due(1).next_due);
  for (const QueueCount& count : memory_->store->count()) {
    if (count.oldest_run_at && *count.oldest_run_at > now) take_earlier(earliest, count.oldest_run_at);
  }
  return earliest;
}

}  // namespace hapax::capi
