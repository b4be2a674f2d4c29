// Back-off for full scans.
//
// A transaction held open keeps PostgreSQL from removing what was claimed and finished, and a scan from the start of an
// index reads all of it. Once that is slow, most scans start where the last one ended, and full scans are limited to a
// twentieth of the time. Each process uses its own: one that knows nothing makes a full scan.
#pragma once

#include <algorithm>
#include <chrono>

namespace hapax::postgres {

class ScanBackoff {
 public:
  using Clock = std::chrono::steady_clock;

  bool full_scan_allowed() const { return Clock::now() >= not_before_; }
  Clock::duration wait() const { return not_before_ - Clock::now(); }

  // Reports that a full scan with this many rows took this long. The next one is delayed by at most `longest`.
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
