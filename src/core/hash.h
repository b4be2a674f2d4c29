// SHA-256, and the two hashes Hapax makes with it. They are separate types, so neither is taken for the other.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view bytes);

template <class Tag>
struct Hash {
  Digest bytes{};

  auto operator<=>(const Hash&) const = default;

  std::string to_string() const;                            // sha256:<64 hex digits>
  static std::optional<Hash> parse(std::string_view text);  // with or without the "sha256:"
};

using InputHash = Hash<struct InputTag>;        // of the canonical input
using IdentityHash = Hash<struct IdentityTag>;  // of an identity

}  // namespace hapax
