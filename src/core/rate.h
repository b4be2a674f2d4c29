// Rate limits: a token bucket per queue, kept as one number in the store and shared by all servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace hapax {

struct Rate {
  std::int64_t count = 0;  // so many
  Duration per{};          // in so long
  std::int64_t burst = 0;  // at once at most; the count unless set

  bool operator==(const Rate&) const = default;
};

// "100/sec", "500/min", "10000/hour", "5/day" (also "s", "m", "h", "d" and the long words). Nothing for anything else.
std::optional<Rate> parse_rate(std::string_view text);
std::string format_rate(const Rate& rate);

// The state of a bucket: the instant, in nanoseconds since the epoch, at which it will be full again, and the rate for
// which that holds. An instant in the past means full, so an unused queue needs no row.
struct RateState {
  std::int64_t full_at_ns = 0;
  Rate rate = {};  // a count of 0: not known

  bool operator==(const RateState&) const = default;
};

// How many of `wanted` may go now; advances the state by as many.
//
// Under another rate than the state's, what was taken counts as that many permits of the new rate, at most as its empty
// bucket. That changes the state even if nothing may go: the caller stores it, because the new bucket refills from this
// call on.
std::int64_t take(const Rate& rate, RateState& state, Time now, std::int64_t wanted);

// Returns that many permits. A bucket is never fuller than full.
void return_permits(const Rate& rate, RateState& state, Time now, std::int64_t count);

// The first millisecond at which one more may go.
Time next_permit(const Rate& rate, const RateState& state, Time now);

}  // namespace hapax
