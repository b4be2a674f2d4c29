// How often a scan may begin at the beginning.
//
// A transaction that somebody holds open keeps PostgreSQL from clearing away what was claimed and finished, and a scan
// from the start of an index wades through all of it. Where that has become slow, most scans begin where the last one
// ended, and one from the start is made only so often that these take a twentieth of the time. Used by one process for
// itself: whoever knows nothing begins at the beginning.
#pragma once

#include <algorithm>
#include <chrono>

namespace hapax::postgres {

class ScanPace {
 public:
  using Clock = std::chrono::steady_clock;

  bool may_begin_at_the_beginning() const { return Clock::now() >= not_before_; }
  Clock::duration wait() const { return not_before_ - Clock::now(); }

  // A scan from the beginning that gave so many rows took so long. The next one is never put off for longer than that.
  void took(Clock::duration time, int rows, Clock::duration longest = std::chrono::hours(1)) {
    const bool is_slow = time > kSlow + rows * kSlowForEach;
    not_before_ = is_slow ? Clock::now() + std::min<Clock::duration>(kPause * time, longest) : Clock::time_point();
  }

 private:
  static constexpr auto kSlow = std::chrono::milliseconds(10);
  static constexpr auto kSlowForEach = std::chrono::microseconds(60);
  static constexpr int kPause = 19;

  Clock::time_point not_before_{};
};

}  // namespace hapax::postgres
