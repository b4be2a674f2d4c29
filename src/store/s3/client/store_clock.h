// The bucket's clock, told from the Date headers of its answers.
//
// A Date has a resolution of one second: an answer that says d, to a request sent at s and answered at r, shows that
// the bucket's clock stood somewhere in [d, d + 1 s) at some moment between s and r. Each answer thus bounds how far
// that clock is ahead of a clock of this machine that never jumps, and the bounds of all answers together are soon much
// closer than a second. Between the bounds this machine's own idea of the time decides: machines that are kept in time
// agree at once, and one that is not is wrong by no more than the bounds.
#pragma once

#include <mutex>
#include <optional>

#include "core/time.h"

namespace hapax {

// Milliseconds of a clock of this machine that is never set, and runs on while the machine sleeps.
struct Monotonic {
  std::int64_t ms = 0;
  static Monotonic now();

  auto operator<=>(const Monotonic&) const = default;
};

// May be used from any thread.
class StoreClock {
 public:
  // The bucket dated its answer to a request that was sent and answered then, by the machine's clock.
  void observe(Time date, Monotonic sent, Monotonic received);

  // Nothing before the first answer. Never less than before. `machine` is what the machine's own clock says.
  std::optional<Time> now(Monotonic at, Time machine);

  // How sure it is: the distance of the bounds.
  std::optional<Duration> uncertainty(Monotonic at) const;

  // How long ago the last answer came.
  std::optional<Duration> age(Monotonic at) const;

 private:
  struct Bounds {
    double low = 0, high = 0;  // of bucket minus machine, in milliseconds
  };
  Bounds at(Monotonic now) const;

  mutable std::mutex mutex_;
  std::optional<Monotonic> seen_;  // the last answer
  Bounds bounds_;                  // as of then
  Time latest_{};                  // that was given out
};

}  // namespace hapax
