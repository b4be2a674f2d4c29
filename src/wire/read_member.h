// Reads the members of a server's answer. Everything here throws Failure::corrupt for one that does not have the
// documented form. A member that is JSON null counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/json.h"

namespace hapax::wire {

// Says which member is at fault.
[[noreturn]] void malformed(std::string_view member);

const Json* present(const Json& document, std::string_view name);
std::optional<std::string> text(const Json& document, std::string_view name);
std::string required_text(const Json& document, std::string_view name);
bool flag(const Json& document, std::string_view name);  // absent is false
std::int64_t integer(const Json& document, std::string_view name, std::int64_t absent);
AttemptError read_error(const Json& document);

inline std::int32_t small_integer(const Json& document, std::string_view name) {
  return static_cast<std::int32_t>(integer(document, name, 0));
}

// A string that `parse` understands.
template <class Parse>
auto parsed(const Json& document, std::string_view name, Parse parse) -> decltype(parse(std::string_view())) {
  const auto value = text(document, name);
  if (!value) return {};
  auto result = parse(std::string_view(*value));
  if (!result) malformed(name);
  return result;
}

template <class Parse>
auto required(const Json& document, std::string_view name, Parse parse) {
  auto value = parsed(document, name, parse);
  if (!value) malformed(name);
  return *std::move(value);
}

// A required member, read by `read`.
template <class Read>
auto read_member(const Json& document, std::string_view member, Read read) {
  const Json* value = document.find(member);
  if (!value) malformed(member);
  return read(*value);
}

// The items of a required array, each read by `read`.
template <class Read>
auto read_all(const Json& document, std::string_view member, Read read) {
  const Json* array = document.find(member);
  if (!array || !array->is(Json::Kind::array)) malformed(member);
  std::vector<decltype(read(document))> values;
  values.reserve(array->items.size());
  for (const Json& item : array->items) values.push_back(read(item));
  return values;
}

}  // namespace hapax::wire
