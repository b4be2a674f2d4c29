// Instants and durations: milliseconds everywhere, in the store as on the wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax {

using Duration = std::chrono::milliseconds;
using Time = std::chrono::sys_time<Duration>;

// RFC 3339 in UTC with milliseconds: 2026-01-27T12:00:00.000Z.
std::string format_time(Time time);

// Any RFC 3339 instant (with `Z` or an offset, with or without a fraction, rounded down to the millisecond); years
// 1970 to 9999. Nothing for anything else.
std::optional<Time> parse_time(std::string_view text);

// "500ms", "30s", "5m", "12h", "7d", "2w", several together ("1h30m"), and "0". Whole numbers, no sign, no spaces, up
// to 100 years. Nothing for anything else.
std::optional<Duration> parse_duration(std::string_view text);

// The shortest text that parse_duration reads back: 90000 ms is "90s", one week "7d".
std::string format_duration(Duration duration);

constexpr std::int64_t to_ms(Time time) { return time.time_since_epoch().count(); }
constexpr Time from_ms(std::int64_t ms) { return Time(Duration(ms)); }

// The source of time. Always passed in.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override;
};

}  // namespace hapax
