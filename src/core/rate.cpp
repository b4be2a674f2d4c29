#include "core/rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/invariant.h"

namespace hapax {

namespace {

struct Unit {
  Duration per;
  std::array<std::string_view, 3> names;  // the first one is written
};

const std::array<Unit, 4> kUnits{{{std::chrono::seconds(1), {"sec", "s", "second"}},
                                  {std::chrono::minutes(1), {"min", "m", "minute"}},
                                  {std::chrono::hours(1), {"hour", "h", "hr"}},
                                  {std::chrono::days(1), {"day", "d", "days"}}}};

constexpr std::int64_t kMaxCount = 1'000'000'000;

std::int64_t to_ns(Time time) { return to_ms(time) * 1'000'000; }
std::int64_t period_ns(const Rate& rate) { return rate.per.count() * 1'000'000; }

// The time after which permits come back, rounded down: each take gives away at most a nanosecond.
std::int64_t cost_ns(const Rate& rate, std::int64_t permits) {
  return static_cast<std::int64_t>(static_cast<__int128>(permits) * period_ns(rate) / rate.count);
}

// The most permits that cost no more than that: the exact inverse of cost_ns, including rounding.
std::int64_t permits_in(const Rate& rate, std::int64_t ns) {
  return static_cast<std::int64_t>((static_cast<__int128>(ns + 1) * rate.count - 1) / period_ns(rate));
}

// What is owed in this time, in permits, rounded up: a change of the rate forgives no part of one.
std::int64_t permits_owed(const Rate& rate, std::int64_t ns) {
  return static_cast<std::int64_t>((static_cast<__int128>(ns) * rate.count + period_ns(rate) - 1) / period_ns(rate));
}

// Clocks of servers that share a bucket may differ by this much. A state further ahead comes from a clock that was set
// back.
constexpr std::int64_t kMostSkewNs = 60'000'000'000;

// The state under `rate`, as of now.
RateState settled(const Rate& rate, RateState state, Time now) {
  invariant(rate.count > 0 && rate.per.count() > 0 && rate.burst > 0, "a rate has a count, a period and a burst");
  const std::int64_t owed_ns = state.full_at_ns - to_ns(now), empty_ns = cost_ns(rate, rate.burst);
  if (owed_ns <= 0) return state;
  const bool is_known = state.rate.count > 0;
  if (!is_known || state.rate != rate) {
    const std::int64_t owed_now_ns =
        is_known ? cost_ns(rate, std::min(permits_owed(state.rate, owed_ns), rate.burst)) : std::min(owed_ns, empty_ns);
    return {to_ns(now) + owed_now_ns, rate};
  }
  if (owed_ns > empty_ns + kMostSkewNs) state.full_at_ns = to_ns(now) + empty_ns;
  return state;
}

// A bucket is never fuller than full, or emptier than empty.
std::int64_t full_at_ns(const Rate& rate, const RateState& state, Time now) {
  return std::clamp(state.full_at_ns, to_ns(now), to_ns(now) + cost_ns(rate, rate.burst));
}

}  // namespace

std::optional<Rate> parse_rate(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const auto number = text.substr(0, slash), word = text.substr(slash + 1);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc() || end != number.data() + number.size() || count < 1 || count > kMaxCount) return {};
  for (const Unit& unit : kUnits) {
    if (std::find(unit.names.begin(), unit.names.end(), word) != unit.names.end()) {
      return Rate{.count = count, .per = unit.per, .burst = count};
    }
  }
  return {};
}

std::string format_rate(const Rate& rate) {
  for (const Unit& unit : kUnits) {
    if (unit.per == rate.per) return fmt::format("{}/{}", rate.count, unit.names[0]);
  }
  return {};
}

std::int64_t take(const Rate& rate, RateState& state, Time now, std::int64_t wanted) {
  state = settled(rate, state, now);
  const std::int64_t full_at = full_at_ns(rate, state, now);
  const std::int64_t room = to_ns(now) + cost_ns(rate, rate.burst) - full_at;
  const std::int64_t granted = room <= 0 ? 0 : std::min(wanted, permits_in(rate, room));
  if (granted > 0) state = {full_at + cost_ns(rate, granted), rate};
  invariant(granted >= 0 && granted <= std::max<std::int64_t>(wanted, 0), "no more permits are granted than wanted");
  return granted;
}

void return_permits(const Rate& rate, RateState& state, Time now, std::int64_t count) {
  invariant(count >= 0, "permits are returned, not taken");
  state = settled(rate, state, now);
  if (state.full_at_ns <= to_ns(now)) return;
  state = {full_at_ns(rate, state, now) - cost_ns(rate, count), rate};
}

Time next_permit(const Rate& rate, const RateState& state, Time now) {
  const std::int64_t at_ns =
      full_at_ns(rate, settled(rate, state, now), now) + cost_ns(rate, 1) - cost_ns(rate, rate.burst);
  if (at_ns <= to_ns(now)) return now;
  return from_ms((at_ns + 999'999) / 1'000'000);
}

}  // namespace hapax
