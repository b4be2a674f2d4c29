// A lock that is had in the order it was asked for: the submit, claim and finish lanes take turns, and none starves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace hapax::sqlite {

class FairLock {
 public:
  void lock() {
    std::unique_lock guard(mutex_);
    const std::uint64_t ticket = next_ticket_++;
    turn_.wait(guard, [&] { return serving_ == ticket; });
  }

  bool try_lock() {
    const std::lock_guard guard(mutex_);
    if (serving_ != next_ticket_) return false;
    ++next_ticket_;
    return true;
  }

  void unlock() {
    {
      const std::lock_guard guard(mutex_);
      ++serving_;
    }
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ticket_ = 0, serving_ = 0;
};

}  // namespace hapax::sqlite
