#include "core/time.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace hapax {

namespace {

constexpr Duration kLongest = std::chrono::days(36'525);  // 100 years
constexpr Time kYear10000 = std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);

struct Unit {
  std::string_view name;
  std::int64_t ms;
};

// From the largest down, as format_duration tries them. Weeks are read but not written, because people write "7d".
constexpr std::array<Unit, 5> kUnits{{{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr Unit kWeek{"w", 7 * 86'400'000LL};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> unit_ms(std::string_view name) {
  if (name == kWeek.name) return kWeek.ms;
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return unit.ms;
  }
  return {};
}

// Removes exactly `count` digits from the front.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return {};
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_digit(text[i])) return {};
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take_char(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// The fraction of a second, if there is one, in whole milliseconds.
std::optional<int> take_fraction(std::string_view& text) {
  if (text.empty() || text.front() != '.') return 0;
  text.remove_prefix(1);
  int ms = 0, digits = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), ++digits) {
    if (digits < 3) ms = ms * 10 + (text.front() - '0');
  }
  if (digits == 0) return {};
  for (; digits < 3; ++digits) ms *= 10;
  return ms;
}

// The offset to subtract to get UTC, in minutes.
std::optional<int> take_offset(std::string_view& text) {
  if (take_char(text, "Zz")) return 0;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return {};
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  auto hours = take_digits(text, 2);
  if (!hours || *hours > 23 || !take_char(text, ":")) return {};
  auto minutes = take_digits(text, 2);
  if (!minutes || *minutes > 59) return {};
  return sign * (*hours * 60 + *minutes);
}

}  // namespace

// Written by hand, because every answer has several.
std::string format_time(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto ms = static_cast<unsigned>((time - day).count());
  std::string text = "0000-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t at, std::size_t digits, unsigned value) {
    for (; digits > 0; --digits, value /= 10) text[at + digits - 1] = static_cast<char>('0' + value % 10);
  };
  put(0, 4, static_cast<unsigned>(int(date.year())));
  put(5, 2, unsigned(date.month()));
  put(8, 2, unsigned(date.day()));
  put(11, 2, ms / 3'600'000);
  put(14, 2, ms / 60'000 % 60);
  put(17, 2, ms / 1000 % 60);
  put(20, 3, ms % 1000);
  return text;
}

std::optional<Time> parse_time(std::string_view text) {
  auto year = take_digits(text, 4);
  if (!year || !take_char(text, "-")) return {};
  auto month = take_digits(text, 2);
  if (!month || !take_char(text, "-")) return {};
  auto day = take_digits(text, 2);
  if (!day || !take_char(text, "Tt ")) return {};
  auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take_char(text, ":")) return {};
  auto minute = take_digits(text, 2);
  if (!minute || *minute > 59 || !take_char(text, ":")) return {};
  auto second = take_digits(text, 2);
  if (!second || *second > 60) return {};  // a leap second is taken as the next minute's first
  auto fraction = take_fraction(text);
  if (!fraction) return {};
  auto offset = take_offset(text);
  if (!offset || !text.empty()) return {};

  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(unsigned(*month)),
                                         std::chrono::day(unsigned(*day))};
  if (!date.ok()) return {};
  const Time time = std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute - *offset) +
                    std::chrono::seconds(*second) + Duration(*fraction);
  if (time < from_ms(0) || time >= kYear10000) return {};  // the offset or a leap second may lead out of the range
  return time;
}

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration(0);
  if (text.empty()) return {};
  std::int64_t total = 0;
  while (!text.empty()) {
    std::int64_t number = 0;
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) {
      number = number * 10 + (text[digits++] - '0');
      if (number > kLongest.count()) return {};
    }
    if (digits == 0) return {};
    text.remove_prefix(digits);
    std::size_t letters = 0;
    while (letters < text.size() && !is_digit(text[letters])) ++letters;
    const auto unit = unit_ms(text.substr(0, letters));
    if (!unit || number > kLongest.count() / *unit) return {};
    text.remove_prefix(letters);
    total += number * *unit;
    if (total > kLongest.count()) return {};
  }
  return Duration(total);
}

std::string format_duration(Duration duration) {
  const std::int64_t ms = duration.count();
  if (ms == 0) return "0";
  for (const Unit& unit : kUnits) {
    if (ms % unit.ms == 0) return fmt::format("{}{}", ms / unit.ms, unit.name);
  }
  return {};
}

Time SystemClock::now() const { return std::chrono::floor<Duration>(std::chrono::system_clock::now()); }

}  // namespace hapax
