#include "core/name.h"

#include <fmt/format.h>

#include <algorithm>

namespace hapax {

namespace {

constexpr std::size_t kMaxName = 128, kMaxKey = 255, kMaxRequestKey = 200;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

}  // namespace

std::optional<std::string> check_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) {
    return fmt::format("must be 1 to {} bytes long, not {}", kMaxName, name.size());
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control)) return "must not contain control characters";
  return {};
}

std::optional<std::string> check_idempotency_key(std::string_view key) {
  if (key.empty() || key.size() > kMaxKey) {
    return fmt::format("must be 1 to {} bytes long, not {}", kMaxKey, key.size());
  }
  if (is_blank(key)) return "must not be blank";
  return {};
}

std::optional<std::string> check_request_key(std::string_view key) {
  if (is_blank(key)) return "must not be blank";
  if (key.size() > kMaxRequestKey) {
    return fmt::format("must be at most {} bytes long, not {}", kMaxRequestKey, key.size());
  }
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
