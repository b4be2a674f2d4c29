#include "core/name.h"

#include <fmt/format.h>

#include <algorithm>

namespace hapax {

namespace {

constexpr std::size_t kMaxName = 128, kMaxKey = 255, kMaxRequestKey = 200;

// Removes the first character from the text, which is UTF-8 and not empty.
char32_t take_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(0);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t character = size == 1 ? lead : lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) character = character << 6 | (byte(i) & 0x3fU);
  text.remove_prefix(std::min(size, text.size()));
  return character;
}

// Unicode's White_Space.
bool is_white(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c <= 0x9f); }

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    if (!is_white(take_character(text))) return false;
  }
  return true;
}

bool has_control(std::string_view text) {
  while (!text.empty()) {
    if (is_control(take_character(text))) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> check_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) {
    return fmt::format("must be 1 to {} bytes long, not {}", kMaxName, name.size());
  }
  if (!is_valid_utf8(name)) return "must be UTF-8";
  if (has_control(name)) return "must not contain control characters";
  return {};
}

std::optional<std::string> check_idempotency_key(std::string_view key) {
  if (key.empty() || key.size() > kMaxKey) {
    return fmt::format("must be 1 to {} bytes long, not {}", kMaxKey, key.size());
  }
  if (!is_valid_utf8(key)) return "must be UTF-8";
  if (is_blank(key)) return "must not be blank";
  return {};
}

std::optional<std::string> check_request_key(std::string_view key) {
  if (!is_valid_utf8(key)) return "must be UTF-8";
  if (is_blank(key)) return "must not be blank";
  if (key.size() > kMaxRequestKey) {
    return fmt::format("must be at most {} bytes long, not {}", kMaxRequestKey, key.size());
  }
  if (has_control(key)) return "must not contain control characters";  // no header could carry it
  return {};
}

bool is_valid_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = at + text.size();
  const auto continues = [&](const unsigned char* p) { return p < end && (*p & 0xc0) == 0x80; };
  while (at < end) {
    const unsigned char lead = *at++;
    if (lead < 0x80) continue;
    if (lead >= 0xc2 && lead <= 0xdf) {
      if (!continues(at)) return false;
      at += 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      if (!continues(at) || !continues(at + 1)) return false;
      if (lead == 0xe0 && *at < 0xa0) return false;   // overlong
      if (lead == 0xed && *at >= 0xa0) return false;  // surrogate
      at += 2;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      if (!continues(at) || !continues(at + 1) || !continues(at + 2)) return false;
      if (lead == 0xf0 && *at < 0x90) return false;   // overlong
      if (lead == 0xf4 && *at >= 0x90) return false;  // beyond U+10FFFF
      at += 3;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace hapax
