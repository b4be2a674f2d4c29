// What happens to a submission whose identity has an owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/execution.h"

namespace hapax {

enum class Reuse : std::uint8_t { allow_failed, reject, allow_closed, replace };

std::string_view to_string(Reuse reuse);
std::optional<Reuse> parse_reuse(std::string_view text);

enum class Verdict : std::uint8_t {
  duplicate,    // the owner stands for this submission
  create_new,   // the owner is closed and superseded
  cancel_owner  // the owner is cancelled and superseded
};

// The matrix of owner status and policy.
Verdict decide(Status owner, Reuse reuse);

// How a submission differs from the owner that would stand for it: anything but `none` makes it a conflict. `owner` may
// come from a tombstone.
enum class Difference : std::uint8_t { none, type, input };
Difference difference(const Execution& submission, const Execution& owner);

}  // namespace hapax
