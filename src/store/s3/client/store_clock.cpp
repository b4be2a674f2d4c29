#include "store/s3/client/store_clock.h"

#include <time.h>

#include <algorithm>
#include <cmath>

namespace hapax {

namespace {

// Two clocks drift apart, by less than this: what is known of their distance becomes less sure as it becomes older.
constexpr double kDrift = 200e-6;

// Several servers behind one name may differ by so much without one of them having been set.
constexpr double kSetMs = 2000;

}  // namespace

Monotonic Monotonic::now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return {static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000};
}

StoreClock::Bounds StoreClock::at(Monotonic now) const {
  const double drift = static_cast<double>(std::max<std::int64_t>(0, now.ms - seen_->ms)) * kDrift;
  return {bounds_.low - drift, bounds_.high + drift};
}

void StoreClock::observe(Time date, Monotonic sent, Monotonic received) {
  const Bounds told{static_cast<double>(to_ms(date) - received.ms), static_cast<double>(to_ms(date) + 1000 - sent.ms)};
  const std::lock_guard lock(mutex_);
  if (!seen_) {
    bounds_ = told;
  } else {
    const Bounds known = at(received);
    const Bounds both{std::max(known.low, told.low), std::min(known.high, told.high)};
    const double apart = both.low - both.high;
    if (apart <= 0) {
      bounds_ = both;
    } else if (apart < kSetMs) {
      // The two contradict each other by little: what was known is moved as little as the newer one asks.
      const double nearest = told.low > known.high ? told.low : told.high;
      bounds_ = {nearest, nearest};
    } else {
      bounds_ = told;
    }
  }
  seen_ = seen_ ? std::max(*seen_, received) : received;
}

std::optional<Time> StoreClock::now(Monotonic at, Time machine) {
  const std::lock_guard lock(mutex_);
  if (!seen_) return {};
  const Bounds bounds = this->at(at);
  const double offset = std::clamp(static_cast<double>(to_ms(machine) - at.ms), bounds.low, bounds.high);
  latest_ = std::max(latest_, from_ms(at.ms + static_cast<std::int64_t>(std::floor(offset))));
  return latest_;
}

std::optional<Duration> StoreClock::uncertainty(Monotonic at) const {
  const std::lock_guard lock(mutex_);
  if (!seen_) return {};
  const Bounds bounds = this->at(at);
  return Duration(static_cast<std::int64_t>(std::ceil(bounds.high - bounds.low)));
}

std::optional<Duration> StoreClock::age(Monotonic at) const {
  const std::lock_guard lock(mutex_);
  if (!seen_) return {};
  return Duration(at.ms - seen_->ms);
}

}  // namespace hapax
