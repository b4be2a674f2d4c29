// A first-come, first-served lock, so that none of the submit, claim and finish lanes starves.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

namespace hapax::sqlite {

class FairLock {
 public:
  void lock() {
    while (!try_lock_until(std::chrono::steady_clock::now() + std::chrono::hours(1))) {}
  }

  // False: it was not free by then.
  bool try_lock_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock guard(mutex_);
    const std::uint64_t ticket = next_ticket_++;
    waiting_.push_back(ticket);
    if (turn_.wait_until(guard, deadline, [&] { return !held_ && waiting_.front() == ticket; })) {
      waiting_.pop_front();
      held_ = true;
      return true;
    }
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), ticket));
    guard.unlock();
    turn_.notify_all();  // the next one may be the first now
    return false;
  }

  bool try_lock() {
    const std::lock_guard guard(mutex_);
    if (held_ || !waiting_.empty()) return false;
    held_ = true;
    return true;
  }

  void unlock() {
    {
      const std::lock_guard guard(mutex_);
      held_ = false;
    }
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  std::deque<std::uint64_t> waiting_;
  std::uint64_t next_ticket_ = 0;
  bool held_ = false;
};

}  // namespace hapax::sqlite
