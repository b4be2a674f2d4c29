// Long documents whose payloads are only checked, hashed and kept: a tree of a million small values takes fifty times
// the memory of their text.
#pragma once

#include <span>
#include <string_view>

#include "core/json.h"

namespace hapax {

// Like parse_json(), but an array or object that is the value of a member with one of these names is packed: its text
// is its canonical JSON, and it has no items or members. canonical_json() takes it as it is; unpack it to read it.
// Throws InvalidJson also for more than 200,000 values outside of packed ones.
Json parse_packed_json(std::string_view text, std::span<const std::string_view> packed);

bool is_packed(const Json& value);

// The value with its items or members, packed or not.
Json unpacked(const Json& value);

}  // namespace hapax
