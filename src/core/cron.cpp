#include "core/cron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <vector>

namespace hapax {

using namespace std::chrono;

namespace {

constexpr std::size_t kMaxExpression = 1000;  // in bytes

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Field {
  std::string_view name;
  int low, high;
  std::string_view allowed;
};
constexpr Field kSecond{"second", 0, 59, "0 to 59"};
constexpr Field kMinute{"minute", 0, 59, "0 to 59"};
constexpr Field kHour{"hour", 0, 23, "0 to 23"};
constexpr Field kDay{"day of month", 1, 31, "1 to 31, or L for the last"};
constexpr Field kMonth{"month", 1, 12, "1 to 12, or jan to dec"};
constexpr Field kWeekday{"day of week", 0, 7,
                         "0 to 7 (0 and 7 are Sunday), sun to sat, 5L for the last Friday, or 5#3 for the third"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNicknames{{{"@yearly", "0 0 1 1 *"},
                                                                                   {"@annually", "0 0 1 1 *"},
                                                                                   {"@monthly", "0 0 1 * *"},
                                                                                   {"@weekly", "0 0 * * 0"},
                                                                                   {"@daily", "0 0 * * *"},
                                                                                   {"@midnight", "0 0 * * *"},
                                                                                   {"@hourly", "0 * * * *"}}};

constexpr std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }
constexpr bool has(std::uint64_t set, unsigned number) { return (set & bit(number)) != 0; }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ' ');
  std::erase(parts, std::string_view());
  return parts;
}

}  // namespace

class CronParser {
 public:
  explicit CronParser(Cron& cron) : cron_(cron) {}

  void parse(std::string_view expression) {
    if (expression.size() > kMaxExpression) {
      throw Cron::Bad{fmt::format("must be at most {} bytes long, not {}", kMaxExpression, expression.size())};
    }
    std::string text(expression);
    for (char& c : text) c = c == '\t' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::vector<std::string_view> fields = words(text);
    if (fields.size() == 1 && fields[0].starts_with('@')) fields = words(expand(fields[0]));
    if (fields.size() == 5) fields.insert(fields.begin(), "0");
    if (fields.size() != 6) {
      throw Cron::Bad{
          fmt::format("must have five fields (minute, hour, day of month, month, day of week), six with the second "
                      "first, or be one of {}; it has {}",
                      nicknames(), fields.size())};
    }
    cron_.seconds_ = set(kSecond, fields[0]);
    cron_.minutes_ = set(kMinute, fields[1]);
    cron_.hours_ = set(kHour, fields[2]);
    days(fields[3]);
    cron_.months_ = set(kMonth, fields[4]);
    weekdays(fields[5]);
    if (!cron_.next_local(TimeZone::Local())) {
      throw Cron::Bad{fmt::format("never fires: no month of '{}' has a day '{}'", fields[4], fields[3])};
    }
  }

 private:
  static std::string nicknames() {
    std::string names;
    for (const auto& [name, meaning] : kNicknames) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    return names;
  }

  static std::string_view expand(std::string_view nickname) {
    for (const auto& [name, meaning] : kNicknames) {
      if (name == nickname) return meaning;
    }
    throw Cron::Bad{fmt::format("'{}' is not known; known are {}", nickname, nicknames())};
  }

  static std::uint64_t set(const Field& field, std::string_view text) {
    std::uint64_t set = 0;
    for (const std::string_view item : split(text, ',')) set |= range(field, item);
    return set;
  }

  void days(std::string_view text) {
    cron_.any_day_ = text == "*" || text == "?";
    if (text == "?") text = "*";
    for (const std::string_view item : split(text, ',')) {
      if (item == "l") {
        cron_.last_day_ = true;
      } else {
        cron_.days_ |= range(kDay, item);
      }
    }
  }

  void weekdays(std::string_view text) {
    cron_.any_weekday_ = text == "*" || text == "?";
    if (text == "?") text = "*";
    for (const std::string_view item : split(text, ',')) {
      if (const auto hash = item.find('#'); hash != std::string_view::npos) {
        const unsigned day = weekday(item.substr(0, hash), item);
        const auto nth = plain(item.substr(hash + 1));
        if (!nth || *nth < 1 || *nth > 5) throw bad(kWeekday, item, "the number after # must be 1 to 5");
        cron_.nth_weekdays_ |= bit(day * 5 + static_cast<unsigned>(*nth) - 1);
      } else if (item.size() > 1 && item.back() == 'l') {
        cron_.last_weekdays_ |= bit(weekday(item.substr(0, item.size() - 1), item));
      } else {
        const std::uint64_t days = range(kWeekday, item);
        cron_.weekdays_ |= (days | days >> 7) & 0x7f;  // 7 is 0
      }
    }
  }

  static unsigned weekday(std::string_view text, std::string_view item) {
    return static_cast<unsigned>(number(kWeekday, text, item)) % 7;
  }

  // One item of a list: *, a, a-b, each with or without /n.
  static std::uint64_t range(const Field& field, std::string_view item) {
    const auto slash = item.find('/');
    const std::string_view span = item.substr(0, slash);
    const int last = field.high == 7 ? 6 : field.high;  // Sunday once
    int step = 1;
    if (slash != std::string_view::npos) {
      const auto given = plain(item.substr(slash + 1));
      if (!given || *given < 1 || *given > last) throw bad(field, item, fmt::format("the step must be 1 to {}", last));
      step = *given;
    }
    int low = field.low, high = last;
    if (span != "*") {
      const auto dash = span.find('-');
      low = number(field, span.substr(0, dash), item);
      if (dash != std::string_view::npos) {
        high = number(field, span.substr(dash + 1), item);
        if (field.high == 7 && high == 0 && low > 0) high = 7;
        if (high < low) throw backwards(field, item, low, high, last);
      } else if (slash == std::string_view::npos) {
        high = low;
      }
    }
    std::uint64_t set = 0;
    for (int value = low; value <= high; value += step) set |= bit(static_cast<unsigned>(value));
    return set;
  }

  static std::optional<int> plain(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || text.front() == '-' || error != std::errc() || end != text.data() + text.size())
      return std::nullopt;
    return value;
  }

  static int number(const Field& field, std::string_view text, std::string_view item) {
    const auto named = [&](const auto& names) -> std::optional<int> {
      const auto found = std::find(names.begin(), names.end(), text);
      if (found == names.end()) return std::nullopt;
      return static_cast<int>(found - names.begin()) + field.low;
    };
    std::optional<int> value = plain(text);
    if (!value && field.high == 12) value = named(kMonths);
    if (!value && field.high == 7) value = named(kWeekdays);
    if (!value || *value < field.low || *value > field.high) {
      throw bad(field, item, fmt::format("'{}' must be {}", text, field.allowed));
    }
    return *value;
  }

  static Cron::Bad backwards(const Field& field, std::string_view item, int low, int high, int last) {
    return bad(field, item,
               fmt::format("a range must not run backwards; write {}-{},{}-{}", low, last, field.low, high));
  }

  static Cron::Bad bad(const Field& field, std::string_view item, std::string_view why) {
    return Cron::Bad{fmt::format("the {} '{}' is wrong: {}", field.name, item, why)};
  }

  Cron& cron_;
};

std::variant<Cron, Cron::Bad> Cron::parse(std::string_view expression) {
  Cron cron;
  try {
    CronParser(cron).parse(expression);
  } catch (const Bad& bad) {
    return bad;
  }
  return cron;
}

// ---- firing

namespace {

// The longest wait is for a fifth Sunday in February, across a century year that is not a leap year.
constexpr auto kLongestWait = years(41);
constexpr auto kLastYear = year(9999);

// The first number in the set that is not less than `from`.
std::optional<int> first_in(std::uint64_t set, int from) {
  set = from < 64 ? set >> from << from : 0;
  if (set == 0) return std::nullopt;
  return std::countr_zero(set);
}

}  // namespace

bool Cron::matches_day(year_month_day day) const {
  const auto number = static_cast<unsigned>(day.day());
  const auto last = static_cast<unsigned>(year_month_day_last(day.year(), month_day_last(day.month())).day());
  const unsigned weekday = std::chrono::weekday(sys_days(day)).c_encoding();
  const bool by_day = has(days_, number) || (last_day_ && number == last);
  const bool by_weekday = has(weekdays_, weekday) || has(nth_weekdays_, weekday * 5 + (number - 1) / 7) ||
                          (has(last_weekdays_, weekday) && number + 7 > last);
  if (any_day_) return by_weekday;
  if (any_weekday_) return by_day;
  return by_day || by_weekday;
}

std::optional<seconds> Cron::next_of_day(seconds from) const {
  const hh_mm_ss time(from);
  const auto hour = static_cast<int>(time.hours().count()), minute = static_cast<int>(time.minutes().count()),
             second = static_cast<int>(time.seconds().count());
  const auto at = [](int h, int m, int s) { return hours(h) + minutes(m) + seconds(s); };
  if (has(hours_, static_cast<unsigned>(hour))) {
    if (has(minutes_, static_cast<unsigned>(minute))) {
      if (const auto s = first_in(seconds_, second)) return at(hour, minute, *s);
    }
    if (const auto m = first_in(minutes_, minute + 1)) return at(hour, *m, std::countr_zero(seconds_));
  }
  const auto h = first_in(hours_, hour + 1);
  if (!h) return std::nullopt;
  return at(*h, std::countr_zero(minutes_), std::countr_zero(seconds_));
}

std::optional<TimeZone::Local> Cron::next_local(TimeZone::Local from) const {
  const auto first = floor<std::chrono::days>(from);
  const year_month_day first_date(sys_days(first.time_since_epoch()));
  if (has(months_, static_cast<unsigned>(first_date.month())) && matches_day(first_date)) {
    if (const auto time = next_of_day(from - first)) return first + *time;
  }
  const year end = std::min(first_date.year() + kLongestWait, kLastYear);
  for (sys_days day = sys_days(first_date) + std::chrono::days(1);; day += std::chrono::days(1)) {
    year_month_day date(day);
    if (!has(months_, static_cast<unsigned>(date.month()))) {
      const auto month = first_in(months_, static_cast<int>(static_cast<unsigned>(date.month())));
      date = month ? date.year() / *month / 1 : (date.year() + years(1)) / std::countr_zero(months_) / 1;
      day = date;
    }
    if (date.year() > end) return std::nullopt;
    if (matches_day(date)) return TimeZone::Local(day.time_since_epoch() + *next_of_day(seconds(0)));
  }
}

std::optional<Time> Cron::next(Time after, const TimeZone& zone) const {
  const auto local = next_local(zone.first_from(floor<seconds>(after) + seconds(1)));
  if (!local) return std::nullopt;
  return zone.to_time(*local);
}

}  // namespace hapax
