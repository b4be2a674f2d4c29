// The deadline of this thread's store call.
//
// A call runs on one thread from beginning to end, so its deadline belongs to the thread: every wait within the call,
// for a socket, a lock or a back-off, ends at current() and then throws.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "core/failure.h"
#include "core/time.h"

namespace hapax {

constexpr Duration kStoreTimeout{10'000};  // unless the caller says otherwise

class CallDeadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Instant = Clock::time_point;

  // From now until it goes out of scope. Within another one, the earlier deadline holds.
  explicit CallDeadline(Duration timeout) : CallDeadline(Clock::now() + timeout) {}
  explicit CallDeadline(Instant instant) : before_(current_) { current_ = std::min(before_, instant); }
  ~CallDeadline() { current_ = before_; }
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;

  // Instant::max() outside of any.
  static Instant current() { return current_; }
  static bool is_over() { return Clock::now() >= current_; }

  // The remaining milliseconds, rounded up, for poll() and the like; -1: there is no deadline.
  static int left_ms() {
    if (current_ == Instant::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(current_ - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }

  // Waits for the condition; false if the deadline came first.
  template <class Condition>
  static bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Condition condition) {
    if (current_ != Instant::max()) return changed.wait_until(lock, current_, condition);
    changed.wait(lock, condition);
    return true;
  }

 private:
  static thread_local inline Instant current_ = Instant::max();

  const Instant before_;
};

// Locks a timed mutex, or throws Failure::unavailable at the deadline: nothing was done yet.
template <class Lock>
void lock_by_deadline(Lock& lock) {
  const auto deadline = CallDeadline::current();
  if (deadline == CallDeadline::Instant::max()) {
    lock.lock();
  } else if (!lock.try_lock_until(deadline)) {
    throw Failure(Failure::Code::unavailable, "the store did not answer the calls before this one in time");
  }
}

// A lock that a call may hold for long, because it talks to the store. A waiter waits at most until the deadline of its
// own call, and then throws Failure::unavailable: it has done nothing yet. For std::unique_lock and std::shared_lock.
class CallMutex {
 public:
  void lock() {
    std::unique_lock guard(mutex_);
    wait(guard, [this] { return !alone_ && shared_ == 0; });
    alone_ = true;
  }
  void unlock() {
    {
      const std::lock_guard guard(mutex_);
      alone_ = false;
    }
    freed_.notify_all();
  }
  void lock_shared() {
    std::unique_lock guard(mutex_);
    wait(guard, [this] { return !alone_; });
    ++shared_;
  }
  void unlock_shared() {
    {
      const std::lock_guard guard(mutex_);
      if (--shared_ > 0) return;
    }
    freed_.notify_all();
  }

 private:
  template <class Free>
  void wait(std::unique_lock<std::mutex>& guard, Free is_free) {
    if (CallDeadline::wait(freed_, guard, is_free)) return;
    throw Failure(Failure::Code::unavailable, "the store has not answered the calls before this one in time");
  }

  std::mutex mutex_;
  std::condition_variable freed_;
  bool alone_ = false;
  int shared_ = 0;
};

}  // namespace hapax
