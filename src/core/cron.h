// Cron expressions, and the instants at which they fire in a time zone.
//
// Five fields (minute hour day-of-month month day-of-week), six with the second first, or @yearly, @annually, @monthly,
// @weekly, @daily, @midnight, @hourly. A field is a list of *, numbers, and ranges a-b that do not run backwards, each
// with an optional step /n (a/n goes on to the field's end); months and days of the week also by name (jan, mon), in
// any case. Days of the week count from 0 = Sunday; 7 is Sunday, too. Beyond that: L as day of the month is its last
// day; 5L as day of the week is the last Friday of the month, 5#3 the third; ? in either day field is *. If neither day
// field is *, a day that matches one of them counts.
//
// Daylight saving: a local time that does not exist fires at the next instant that does; one that occurs twice fires
// once, the first time. Several that come to the same instant are one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/time.h"
#include "core/time_zone.h"

namespace hapax {

class Cron {
 public:
  // What is wrong with an expression: a sentence that names the field and says what is allowed.
  struct Bad {
    std::string message;
  };
  // An expression that never fires (30 February) is bad, too.
  static std::variant<Cron, Bad> parse(std::string_view expression);

  // The first instant after that one, a whole second. Nothing if it would be after the year 9999.
  std::optional<Time> next(Time after, const TimeZone& zone) const;

 private:
  friend class CronParser;

  bool matches_day(std::chrono::year_month_day day) const;
  std::optional<std::chrono::seconds> next_of_day(std::chrono::seconds from) const;  // at or after
  std::optional<TimeZone::Local> next_local(TimeZone::Local from) const;             // at or after

  // Sets of small numbers: bit n is set if n is in it.
  std::uint64_t seconds_ = 0, minutes_ = 0, hours_ = 0, days_ = 0, months_ = 0, weekdays_ = 0;
  std::uint64_t nth_weekdays_ = 0;  // weekday * 5 + (n - 1)
  std::uint64_t last_weekdays_ = 0;
  bool last_day_ = false;
  bool any_day_ = false, any_weekday_ = false;  // the field was * or ?
};

}  // namespace hapax
