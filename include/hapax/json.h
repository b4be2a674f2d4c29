// C++ values to JSON and back.
//
// Supported: bool, integers, floating point, std::string, enums and structs described with Boost.Describe,
// std::optional, std::vector, std::array, std::map with string keys, std::pair and std::tuple (as arrays),
// std::variant, and boost::json::value for anything else. void and std::monostate are "nothing".
//
// Reading a struct ignores members that the struct does not have, and an absent member keeps its default if it is a
// std::optional. So a field can be added while older tasks are still waiting. Any other mismatch throws Error with the
// code InvalidJson and the place: "/items/3/price: expected a number, got a string".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "hapax/detail/convert.h"

namespace hapax {

// The JSON text of a value; "" for nothing.
template <class T>
std::string to_json(const T& value) {
  return detail::write(value);
}

// The value in a JSON text. The empty text is nothing, and read as null.
template <class T>
T from_json(std::string_view text) {
  return detail::read<T>(text);
}

}  // namespace hapax
