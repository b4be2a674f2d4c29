#include "cli/paint.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"

namespace hapax {

namespace {

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::bold: return "1";
    case Colour::dim: return "2";
    case Colour::red: return "31";
    case Colour::green: return "32";
    case Colour::yellow: return "33";
    case Colour::blue: return "34";
    case Colour::none: break;
  }
  return "0";
}

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

Paint Paint::of(const Program& program) {
  const auto variable = [&](const char* name) {
    const auto found = program.environment.find(name);
    return found == program.environment.end() ? std::string() : found->second;
  };
  return Paint(program.terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb");
}

std::string Paint::operator()(Colour colour, std::string_view text) const {
  if (!on_ || colour == Colour::none || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(colour), text);
}

Colour colour_of(Status status) {
  switch (status) {
    case Status::running: return Colour::blue;
    case Status::completed: return Colour::green;
    case Status::failed:
    case Status::timed_out: return Colour::red;
    case Status::cancelled: return Colour::yellow;
    default: return Colour::none;
  }
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string shorten(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t end = 0;
  for (std::size_t left = columns - 1; end < text.size(); ++end) {
    if (starts_character(text[end]) && left-- == 0) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string format_age(Duration age) {
  using namespace std::chrono;
  if (age < seconds(1)) return fmt::format("{}ms", std::max<std::int64_t>(age.count(), 0));
  if (age < minutes(2)) return fmt::format("{}s", duration_cast<seconds>(age).count());
  if (age < hours(2)) return fmt::format("{}m", duration_cast<minutes>(age).count());
  if (age < days(2)) return fmt::format("{}h", duration_cast<hours>(age).count());
  return fmt::format("{}d", duration_cast<days>(age).count());
}

std::string relative(Time time, Time now) {
  const Duration age = now - time;
  if (age < Duration(0)) return "in " + format_age(-age);
  return age < std::chrono::seconds(1) ? "just now" : format_age(age) + " ago";
}

}  // namespace hapax
