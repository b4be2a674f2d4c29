// Foreign text, made safe for a terminal.
//
// A payload or a hostile server can send characters that a terminal obeys instead of showing: escape sequences move the
// cursor or set the title, C1 controls do the same in one character, bidirectional marks reorder a line.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace hapax {

// The text with everything a terminal would obey shown as an escape (\u001b). Line breaks and tabs stay. A JSON
// document stays the same JSON.
std::string escape_controls(std::string_view text);

// The same on one line, for a cell of a table: a space for everything that is not shown.
std::string printable(std::string_view text);

// The last filter before a terminal: all output passes through it, and only Hapax's own colours and its progress line
// stay unescaped. Text that reaches it unescaped by mistake can do no more than those.
class TerminalFilter final : public std::streambuf {
 public:
  // Filters what is written to `stream` from now on, until it is destroyed.
  explicit TerminalFilter(std::ostream& stream) : stream_(stream), terminal_(stream.rdbuf(this)) {}
  ~TerminalFilter() override;
  TerminalFilter(const TerminalFilter&) = delete;
  TerminalFilter& operator=(const TerminalFilter&) = delete;

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  void write(bool all);

  std::ostream& stream_;
  std::streambuf* terminal_;
  std::string pending_;  // the beginning of an incomplete character or sequence
};

}  // namespace hapax
