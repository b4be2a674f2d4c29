// The conversions behind hapax/json.h. Nothing here is for callers.
#pragma once

#include <array>
#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hapax/error.h"

namespace hapax::detail {

namespace json = boost::json;

template <class T>
concept Described = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;

template <class T>
concept DescribedEnum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_a<Template<Arguments...>, Template> = true;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_string_map = false;
template <class T, class Compare>
inline constexpr bool is_string_map<std::map<std::string, T, Compare>> = true;

template <class T>
concept Nothing = std::is_void_v<T> || std::same_as<T, std::monostate> || std::same_as<T, std::nullptr_t>;

// Public members, inherited ones included.
template <class T>
using MembersOf = boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>;

// JSON that does not have the type it is read as.
class Mismatch : public Error {
 public:
  Mismatch(std::string at, std::string message)
      : Error("InvalidJson", (at.empty() ? "" : at + ": ") + message),
        at_(std::move(at)),
        message_(std::move(message)) {}

  const std::string& at() const { return at_; }  // a JSON Pointer
  const std::string& message() const { return message_; }

 private:
  std::string at_, message_;
};

[[noreturn]] inline void mismatch(const std::string& at, const std::string& message) { throw Mismatch(at, message); }

inline std::string_view kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return "null";
    case json::kind::bool_: return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_: return "a number";
    case json::kind::string: return "a string";
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "something else";
}

[[noreturn]] inline void expected(std::string_view what, const json::value& got, const std::string& at) {
  mismatch(at, "expected " + std::string(what) + ", got " + std::string(kind_of(got)));
}

// ---- C++ to JSON

template <class T>
json::value to_value(const T& value);

template <class T>
json::value object_of(const T& value) {
  json::object object;
  boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) { object[member.name] = to_value(value.*member.pointer); });
  return object;
}

template <class Range>
json::value array_of(const Range& range) {
  json::array array;
  for (const auto& element : range) array.push_back(to_value(element));
  return array;
}

template <class Tuple>
json::value tuple_array(const Tuple& tuple) {
  json::array array;
  std::apply([&](const auto&... element) { (array.push_back(to_value(element)), ...); }, tuple);
  return array;
}

template <class T>
json::value to_value(const T& value) {
  if constexpr (std::same_as<T, json::value> || std::same_as<T, bool>) {
    return value;
  } else if constexpr (std::same_as<T, json::object> || std::same_as<T, json::array>) {
    return json::value(value);
  } else if constexpr (Nothing<T>) {
    return nullptr;
  } else if constexpr (std::integral<T>) {
    return json::value(value);
  } else if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) mismatch("", "a number that is not finite has no JSON");
    return json::value(static_cast<double>(value));
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return json::value(std::string_view(value));
  } else if constexpr (is_a<T, std::optional>) {
    return value ? to_value(*value) : json::value(nullptr);
  } else if constexpr (is_a<T, std::variant>) {
    return std::visit([](const auto& alternative) { return to_value(alternative); }, value);
  } else if constexpr (is_a<T, std::pair> || is_a<T, std::tuple>) {
    return tuple_array(value);
  } else if constexpr (is_string_map<T>) {
    json::object object;
    for (const auto& [name, member] : value) object[name] = to_value(member);
    return object;
  } else if constexpr (is_a<T, std::vector> || is_array<T>) {
    return array_of(value);
  } else if constexpr (DescribedEnum<T>) {
    const char* name = boost::describe::enum_to_string(value, nullptr);
    if (!name) mismatch("", "an enumeration value without a name");
    return json::value(name);
  } else if constexpr (Described<T>) {
    return object_of(value);
  } else {
    static_assert(
        Described<T>,
        "hapax: this type has no JSON. Describe the struct with BOOST_DESCRIBE_STRUCT(Type, (), (members…)), or "
        "use a type that hapax/json.h lists");
  }
}

template <class T>
std::string write(const T& value) {
  if constexpr (Nothing<T>) {
    return "";
  } else {
    return json::serialize(to_value(value));
  }
}

// ---- JSON to C++

template <class T>
T from_value(const json::value& value, const std::string& at);

template <std::integral T>
T integer_from(const json::value& value, const std::string& at) {
  if (const auto* number = value.if_int64(); number && std::in_range<T>(*number)) return static_cast<T>(*number);
  if (const auto* number = value.if_uint64(); number && std::in_range<T>(*number)) return static_cast<T>(*number);
  if (!value.is_number()) expected("a whole number", value, at);
  mismatch(at, json::serialize(value) + " is no whole number in the range of the type");
}

template <class T>
T object_from(const json::value& value, const std::string& at) {
  const auto* object = value.if_object();
  if (!object) expected("an object", value, at);
  T result{};
  boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) {
    using Member = std::remove_cvref_t<decltype(result.*member.pointer)>;
    const auto* found = object->if_contains(member.name);
    if (found) {
      result.*member.pointer = from_value<Member>(*found, at + "/" + member.name);
    } else if constexpr (!is_a<Member, std::optional>) {
      mismatch(at + "/" + member.name, "is missing");
    }
  });
  return result;
}

template <class T>
T tuple_from(const json::value& value, const std::string& at) {
  const auto* array = value.if_array();
  if (!array || array->size() != std::tuple_size_v<T>) {
    expected("an array of " + std::to_string(std::tuple_size_v<T>), value, at);
  }
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return T{from_value<std::tuple_element_t<I, T>>((*array)[I], at + "/" + std::to_string(I))...};
  }(std::make_index_sequence<std::tuple_size_v<T>>());
}

// The first alternative that fits.
template <class T, std::size_t I = 0>
T variant_from(const json::value& value, const std::string& at) {
  if constexpr (I == std::variant_size_v<T>) {
    expected("one of the variant's alternatives", value, at);
  } else {
    try {
      return T(std::in_place_index<I>, from_value<std::variant_alternative_t<I, T>>(value, at));
    } catch (const Error&) {
      return variant_from<T, I + 1>(value, at);
    }
  }
}

template <class T>
T from_value(const json::value& value, const std::string& at) {
  if constexpr (std::same_as<T, json::value>) {
    return value;
  } else if constexpr (std::same_as<T, json::object>) {
    if (!value.is_object()) expected("an object", value, at);
    return value.as_object();
  } else if constexpr (std::same_as<T, json::array>) {
    if (!value.is_array()) expected("an array", value, at);
    return value.as_array();
  } else if constexpr (Nothing<T>) {
    if (!value.is_null()) expected("null", value, at);
    return T{};
  } else if constexpr (std::same_as<T, bool>) {
    if (!value.is_bool()) expected("a boolean", value, at);
    return value.as_bool();
  } else if constexpr (std::integral<T>) {
    return integer_from<T>(value, at);
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) expected("a number", value, at);
    return static_cast<T>(value.to_number<double>());
  } else if constexpr (std::same_as<T, std::string>) {
    if (!value.is_string()) expected("a string", value, at);
    return std::string(value.as_string());
  } else if constexpr (is_a<T, std::optional>) {
    if (value.is_null()) return std::nullopt;
    return from_value<typename T::value_type>(value, at);
  } else if constexpr (is_a<T, std::variant>) {
    return variant_from<T>(value, at);
  } else if constexpr (is_a<T, std::pair> || is_a<T, std::tuple> || is_array<T>) {
    return tuple_from<T>(value, at);
  } else if constexpr (is_string_map<T>) {
    if (!value.is_object()) expected("an object", value, at);
    T map;
    for (const auto& [name, member] : value.as_object()) {
      map.emplace(name, from_value<typename T::mapped_type>(member, at + "/" + std::string(name)));
    }
    return map;
  } else if constexpr (is_a<T, std::vector>) {
    if (!value.is_array()) expected("an array", value, at);
    T vector;
    for (const auto& element : value.as_array()) {
      vector.push_back(from_value<typename T::value_type>(element, at + "/" + std::to_string(vector.size())));
    }
    return vector;
  } else if constexpr (DescribedEnum<T>) {
    T result{};
    if (!value.is_string()) expected("a string", value, at);
    const std::string name(value.as_string());
    if (!boost::describe::enum_from_string(name.c_str(), result)) mismatch(at, "'" + name + "' is no known value");
    return result;
  } else if constexpr (Described<T>) {
    return object_from<T>(value, at);
  } else {
    static_assert(Described<T>,
                  "hapax: this type cannot be read from JSON. Describe the struct with BOOST_DESCRIBE_STRUCT(Type, (), "
                  "(members…)), or use a type that hapax/json.h lists");
  }
}

template <class T>
T read(std::string_view text) {
  if constexpr (std::is_void_v<T>) {
    return;
  } else {
    json::parse_options options;
    options.max_depth = 128;
    boost::system::error_code error;
    const json::value value = text.empty() ? json::value(nullptr) : json::parse(text, error, {}, options);
    if (error) mismatch("", "is no JSON: " + error.message());
    return from_value<T>(value, "");
  }
}

}  // namespace hapax::detail
