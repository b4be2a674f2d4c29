// The lease token: what a worker needs to report on its attempt, and what fences off a stale worker.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/id.h"

namespace hapax {

struct LeaseSecret {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const LeaseSecret&) const = default;

  static LeaseSecret generate();
};

struct LeaseToken {
  ExecutionId execution;
  std::int32_t attempt = 0;
  LeaseSecret secret;

  auto operator<=>(const LeaseToken&) const = default;

  // The token of the next attempt, when the holder of this one continues without a claim. Always the same.
  LeaseToken next() const;

  std::string to_string() const;  // 48 characters, safe in a URL, opaque to clients
  static std::optional<LeaseToken> parse(std::string_view text);
};

}  // namespace hapax
