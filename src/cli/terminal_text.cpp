#include "cli/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace hapax {

namespace {

// What Paint and the progress line write: colours, "back to the start of the line", "clear the rest of it".
constexpr std::array<std::string_view, 8> kOwnSequences{"\x1b[0m",  "\x1b[1m",  "\x1b[2m",  "\x1b[31m",
                                                        "\x1b[32m", "\x1b[33m", "\x1b[34m", "\r\x1b[K"};

bool is_obeyed(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return true;                 // C0 and C1 controls
  if (c == 0x061C || c == 0x200E || c == 0x200F) return true;           // marks of direction
  if (c == 0x2028 || c == 0x2029) return true;                          // separators of lines and paragraphs
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);  // embeddings, overrides, isolates
}

struct Character {
  std::size_t bytes = 1;
  char32_t code = 0;
  bool valid = true;
  bool cut_off = false;  // the text ends inside it
};

// The first character of a non-empty text. A byte that begins no valid UTF-8 is a character by itself.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {1, lead, false};
  char32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (i == text.size()) return {1, lead, false, true};
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {1, lead, false};
    code = code << 6 | (next & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast.at(bytes) || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {1, lead, false};
  return {bytes, code};
}

void append_escaped(std::string& out, std::string_view text, const Character& character) {
  if (!character.valid) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
  } else if (is_obeyed(character.code) && character.code != '\n' && character.code != '\t') {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(character.code));
  } else {
    out += text.substr(0, character.bytes);
  }
}

// The length of our own sequence at the start of the text: 0 if none; npos if it may become one.
std::size_t own_sequence(std::string_view text) {
  std::size_t found = 0;
  for (const std::string_view sequence : kOwnSequences) {
    if (text.starts_with(sequence)) return sequence.size();
    if (sequence.starts_with(text)) found = std::string_view::npos;
  }
  return found;
}

}  // namespace

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    append_escaped(out, text, character);
    text.remove_prefix(character.bytes);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.valid || is_obeyed(character.code)) {
      out += ' ';
    } else {
      out += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

TerminalFilter::~TerminalFilter() {
  write(true);
  terminal_->pubsync();
  stream_.rdbuf(terminal_);
}

std::streamsize TerminalFilter::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  write(false);
  return size;
}

TerminalFilter::int_type TerminalFilter::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  pending_ += traits_type::to_char_type(character);
  write(false);
  return character;
}

int TerminalFilter::sync() { return terminal_->pubsync(); }

void TerminalFilter::write(bool all) {
  std::string_view text = pending_;
  std::string out;
  while (!text.empty()) {
    const std::size_t own = own_sequence(text);
    const Character character = first_character(text);
    if (!all && (own == std::string_view::npos || character.cut_off)) break;
    const bool is_own = own != 0 && own != std::string_view::npos;
    is_own ? (void)out.append(text.substr(0, own)) : append_escaped(out, text, character);
    text.remove_prefix(is_own ? own : character.bytes);
  }
  terminal_->sputn(out.data(), static_cast<std::streamsize>(out.size()));
  pending_.erase(0, pending_.size() - text.size());
}

}  // namespace hapax
