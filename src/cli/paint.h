// Text for people on a terminal: colours, widths, ages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/terminal_text.h"
#include "core/execution.h"

namespace hapax {

struct Program;

enum class Colour : std::uint8_t { none, bold, dim, red, green, yellow, blue };

// Colours for people, plain text otherwise.
class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}

  // On a terminal, unless NO_COLOR is set or the terminal is dumb.
  static Paint of(const Program& program);

  std::string operator()(Colour colour, std::string_view text) const;

 private:
  bool on_;
};

Colour colour_of(Status status);

// The columns of the text, counting each character as one.
std::size_t columns_of(std::string_view text);

// The text, cut to that many columns with an ellipsis.
std::string shorten(std::string_view text, std::size_t columns);

// "450ms", "12s", "5m", "3h", "4d": one unit, for a table.
std::string format_age(Duration age);

// "3s ago", "in 5m", "just now".
std::string relative(Time time, Time now);

}  // namespace hapax
