// Whether the store accepts submissions. Anyone who reaches the server may ask, so a recent result answers for all of
// them.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "store/store.h"

namespace hapax {

class Readiness {
 public:
  explicit Readiness(Store& store) : store_(store) {}

  // Throws the Failure that a submission would get.
  void check() {
    using Clock = std::chrono::steady_clock;
    const std::lock_guard lock(mutex_);
    if (!asked_at_ || Clock::now() - *asked_at_ >= kFor) {
      try {
        store_.check();
        failure_.reset();
      } catch (const Failure& failure) {
        failure_ = failure;
      }
      asked_at_ = Clock::now();
    }
    if (failure_) throw Failure(*failure_);
  }

 private:
  static constexpr std::chrono::milliseconds kFor{500};

  Store& store_;
  std::mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> asked_at_;
  std::optional<Failure> failure_;
};

}  // namespace hapax
