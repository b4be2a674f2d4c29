#include "core/lease.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/claim_secret.h"
#include "core/hash.h"
#include "core/invariant.h"

namespace hapax {

namespace {

constexpr std::size_t kTokenBytes = 36;  // execution 16, attempt 4, secret 16: a multiple of 3, so no padding
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int letter_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  if (c == '_') return 63;
  return -1;
}

}  // namespace

LeaseSecret LeaseSecret::generate() {
  LeaseSecret secret;
  fill_random(secret.bytes.data(), secret.bytes.size());
  return unmarked(secret);
}

LeaseToken LeaseToken::next() const {
  invariant(attempt > 0 && attempt < std::numeric_limits<std::int32_t>::max(), "attempts are counted from 1");
  LeaseToken token{execution, attempt + 1, {}};
  const Digest digest = sha256(to_string());
  std::copy_n(digest.begin(), token.secret.bytes.size(), token.secret.bytes.begin());
  token.secret = unmarked(token.secret);
  return token;
}

std::string LeaseToken::to_string() const {
  std::array<std::uint8_t, kTokenBytes> bytes;
  std::memcpy(bytes.data(), execution.bytes.data(), 16);
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[16 + i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(attempt) >> (24 - 8 * i));
  }
  std::memcpy(bytes.data() + 20, secret.bytes.data(), 16);

  std::string text;
  text.reserve(kTokenBytes / 3 * 4);
  for (std::size_t i = 0; i < kTokenBytes; i += 3) {
    const std::uint32_t group = std::uint32_t(bytes[i]) << 16 | std::uint32_t(bytes[i + 1]) << 8 | bytes[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) text += kAlphabet[group >> shift & 63];
  }
  return text;
}

std::optional<LeaseToken> LeaseToken::parse(std::string_view text) {
  if (text.size() != kTokenBytes / 3 * 4) return {};
  std::array<std::uint8_t, kTokenBytes> bytes;
  for (std::size_t i = 0; i < kTokenBytes / 3; ++i) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const int value = letter_value(text[4 * i + j]);
      if (value < 0) return {};
      group = group << 6 | std::uint32_t(value);
    }
    for (std::size_t j = 0; j < 3; ++j) bytes[3 * i + j] = static_cast<std::uint8_t>(group >> (16 - 8 * j));
  }
  LeaseToken token;
  std::memcpy(token.execution.bytes.data(), bytes.data(), 16);
  std::uint32_t attempt = 0;
  for (std::size_t i = 0; i < 4; ++i) attempt = attempt << 8 | bytes[16 + i];
  token.attempt = static_cast<std::int32_t>(attempt);
  std::memcpy(token.secret.bytes.data(), bytes.data() + 20, 16);
  return token;
}

}  // namespace hapax
