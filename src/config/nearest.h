// "Did you mean …?": the known word nearest to a mistyped one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hapax {

// The nearest of the known words, if it is near enough.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

// `; did you mean "x"?`, or nothing.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace hapax
