// Hexadecimal digits, for ids and hashes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax {

inline void append_hex(std::string& out, std::uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const char digits[] = {kDigits[byte >> 4], kDigits[byte & 15]};
  out.append(digits, sizeof digits);
}

constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte that two digits make.
constexpr std::optional<std::uint8_t> parse_hex(char high, char low) {
  const int value = hex_value(high) * 16 + hex_value(low);
  if (hex_value(high) < 0 || hex_value(low) < 0) return {};
  return static_cast<std::uint8_t>(value);
}

}  // namespace hapax
