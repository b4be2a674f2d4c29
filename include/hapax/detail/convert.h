// The conversions behind hapax/json.h. Nothing here is for callers.
//
// This header brings neither Boost.JSON nor Boost.Describe: reading and writing JSON is compiled into the library, and
// a described struct is found by what its own BOOST_DESCRIBE_STRUCT declares. That keeps the include cheap.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hapax/detail/pointers.h"
#include "hapax/error.h"

namespace boost::json {
class value;
class object;
class array;
}  // namespace boost::json

namespace hapax::detail {

namespace json = boost::json;

// What BOOST_DESCRIBE_STRUCT, _CLASS and _ENUM declare beside the type.
template <class T>
concept Described = std::is_class_v<T> && requires { boost_public_member_descriptor_fn(static_cast<T**>(nullptr)); };

template <class T>
concept DescribedEnum = std::is_enum_v<T> && requires { boost_enum_descriptor_fn(static_cast<T**>(nullptr)); };

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

// EventOf<Data>, of trigger.h.
template <class T>
inline constexpr bool is_event_of = false;

template <class T>
concept Nothing = std::is_void_v<T> || std::same_as<T, std::monostate> || std::same_as<T, std::nullptr_t>;

template <class T>
concept JsonValue = std::same_as<T, json::value> || std::same_as<T, json::object> || std::same_as<T, json::array>;

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

// A place in the document that is read: a member or an element of the one above.
struct At {
  const At* above = nullptr;
  std::string_view name = {};  // of a member; without data: an element
  std::size_t index = 0;
};

// ---- compiled into the library

struct Reading {
  class Document;

  static bool is_null(const json::value& value);
  static bool is_integer(const json::value& value, std::int64_t& number);  // if it fits
  static bool is_integer(const json::value& value, std::uint64_t& number);
  static bool boolean(const json::value& value, const At& at);
  static double number(const json::value& value, const At& at);
  static std::string_view text(const json::value& value, const At& at);
  static const json::object& object(const json::value& value, const At& at);
  static const json::array& array(const json::value& value, const At& at);
  static const json::value& itself(const json::value& value) { return value; }

  static const json::value* member(const json::object& object, std::string_view name);
  static std::size_t size(const json::object& object);
  static std::pair<std::string_view, const json::value*> member(const json::object& object, std::size_t index);
  static std::size_t size(const json::array& array);
  static const json::value& element(const json::array& array, std::size_t index);

  [[noreturn]] static void expected(std::string_view what, const json::value& got, const At& at);
  [[noreturn]] static void no_integer(const json::value& got, const At& at);
  [[noreturn]] static void mismatch(const At& at, const std::string& message);
};

// A parsed text; the empty one is null. Throws Mismatch.
class Reading::Document {
 public:
  explicit Document(std::string_view text);
  ~Document();
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  const json::value& root() const { return *root_; }

 private:
  const json::value* root_;
};

struct Writing {
  static void text(std::string& out, std::string_view text);
  static void number(std::string& out, double number);
  static void value(std::string& out, const json::value& value);
  static void value(std::string& out, const json::object& object);
  static void value(std::string& out, const json::array& array);
  [[noreturn]] static void no_name();
};

// ---- described types

template <template <class...> class List, class... Descriptors, class Function>
constexpr void for_each_of(List<Descriptors...>, Function&& function) {
  (function(Descriptors()), ...);
}

// Public members that hold data, of the bases first.
template <class T, class Function>
constexpr void for_each_member(Function&& function) {
  if constexpr (requires { boost_base_descriptor_fn(static_cast<T**>(nullptr)); }) {
    for_each_of(boost_base_descriptor_fn(static_cast<T**>(nullptr)), [&](auto base) {
      using Base = typename decltype(base)::type;
      if constexpr (Described<Base>) for_each_member<Base>(function);
    });
  }
  for_each_of(boost_public_member_descriptor_fn(static_cast<T**>(nullptr)), [&](auto member) {
    if constexpr (std::is_member_object_pointer_v<std::remove_cvref_t<decltype(member.pointer)>>) function(member);
  });
}

// ---- C++ to JSON

template <class T>
void append(std::string& out, const T& value);

template <class Range>
void append_array(std::string& out, const Range& range) {
  char before = '[';
  for (const auto& element : range) {
    out += before;
    before = ',';
    append(out, element);
  }
  out += before == '[' ? "[]" : "]";
}

template <class T>
void append_object(std::string& out, const T& value) {
  char before = '{';
  for_each_member<T>([&](auto member) {
    out += before;
    before = ',';
    Writing::text(out, member.name);
    out += ':';
    append(out, value.*member.pointer);
  });
  out += before == '{' ? "{}" : "}";
}

template <class T>
void append_map(std::string& out, const T& map) {
  char before = '{';
  for (const auto& [name, member] : map) {
    out += before;
    before = ',';
    Writing::text(out, name);
    out += ':';
    append(out, member);
  }
  out += before == '{' ? "{}" : "}";
}

template <class Tuple>
void append_tuple(std::string& out, const Tuple& tuple) {
  char before = '[';
  std::apply([&](const auto&... element) { ((out += before, before = ',', append(out, element)), ...); }, tuple);
  out += before == '[' ? "[]" : "]";
}

template <class T>
const char* name_of(T value) {
  const char* name = nullptr;
  for_each_of(boost_enum_descriptor_fn(static_cast<T**>(nullptr)), [&](auto enumerator) {
    if (enumerator.value == value) name = enumerator.name;
  });
  if (!name) Writing::no_name();
  return name;
}

template <class T>
void append_event(std::string& out, const T& event) {
  out += "{\"event\":{\"specversion\":\"1.0\"";
  const auto put = [&](std::string_view name, const auto& value) {
    out += ',';
    Writing::text(out, name);
    out += ':';
    append(out, value);
  };
  put("id", event.id);
  put("source", event.source);
  put("type", event.type);
  if (event.subject) put("subject", *event.subject);
  put("data", event.data);
  out += "}}";
}

template <class T>
void append(std::string& out, const T& value) {
  if constexpr (is_event_of<T>) {
    append_event(out, value);
  } else if constexpr (JsonValue<T>) {
    Writing::value(out, value);
  } else if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (Nothing<T>) {
    out += "null";
  } else if constexpr (std::integral<T>) {
    out += std::to_string(value);
  } else if constexpr (std::floating_point<T>) {
    Writing::number(out, static_cast<double>(value));
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    Writing::text(out, std::string_view(value));
  } else if constexpr (is_a<T, std::optional>) {
    value ? append(out, *value) : void(out += "null");
  } else if constexpr (is_a<T, std::variant>) {
    std::visit([&](const auto& alternative) { append(out, alternative); }, value);
  } else if constexpr (is_a<T, std::pair> || is_a<T, std::tuple>) {
    append_tuple(out, value);
  } else if constexpr (is_string_map<T>) {
    append_map(out, value);
  } else if constexpr (is_a<T, std::vector> || is_array<T>) {
    append_array(out, value);
  } else if constexpr (DescribedEnum<T>) {
    Writing::text(out, name_of(value));
  } else if constexpr (Described<T>) {
    append_object(out, value);
  } else {
    static_assert(
        Described<T>,
        "hapax: this type has no JSON. Describe the struct with BOOST_DESCRIBE_STRUCT(Type, (), (members…)), or "
        "use a type that hapax/json.h lists");
  }
}

template <class T>
std::string write(const T& value) {
  std::string out;
  if constexpr (!Nothing<T>) append(out, value);
  return out;
}

// ---- JSON to C++

template <class T>
T from_value(const json::value& value, const At& at);

template <std::integral T>
T integer_from(const json::value& value, const At& at) {
  std::int64_t number = 0;
  if (Reading::is_integer(value, number) && std::in_range<T>(number)) return static_cast<T>(number);
  std::uint64_t large = 0;
  if (Reading::is_integer(value, large) && std::in_range<T>(large)) return static_cast<T>(large);
  Reading::no_integer(value, at);
}

template <class T>
T object_from(const json::value& value, const At& at) {
  const json::object& object = Reading::object(value, at);
  T result{};
  for_each_member<T>([&](auto member) {
    using Member = std::remove_cvref_t<decltype(result.*member.pointer)>;
    const json::value* found = Reading::member(object, member.name);
    if (found) result.*member.pointer = from_value<Member>(*found, At{&at, member.name});
  });
  return result;
}

template <class T>
T tuple_from(const json::value& value, const At& at) {
  constexpr std::size_t kSize = std::tuple_size_v<T>;
  const json::array& array = Reading::array(value, at);
  if (Reading::size(array) != kSize) Reading::expected("an array of " + std::to_string(kSize), value, at);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return T{from_value<std::tuple_element_t<I, T>>(Reading::element(array, I), At{&at, {}, I})...};
  }(std::make_index_sequence<kSize>());
}

// The first alternative that fits.
template <class T, std::size_t I = 0>
T variant_from(const json::value& value, const At& at) {
  if constexpr (I == std::variant_size_v<T>) {
    Reading::expected("one of the variant's alternatives", value, at);
  } else {
    try {
      return T(std::in_place_index<I>, from_value<std::variant_alternative_t<I, T>>(value, at));
    } catch (const Error&) {
      return variant_from<T, I + 1>(value, at);
    }
  }
}

template <class T>
T vector_from(const json::value& value, const At& at) {
  const json::array& array = Reading::array(value, at);
  T vector;
  vector.reserve(Reading::size(array));
  for (std::size_t i = 0; i < Reading::size(array); ++i) {
    vector.push_back(from_value<typename T::value_type>(Reading::element(array, i), At{&at, {}, i}));
  }
  return vector;
}

template <class T>
T map_from(const json::value& value, const At& at) {
  const json::object& object = Reading::object(value, at);
  T map;
  for (std::size_t i = 0; i < Reading::size(object); ++i) {
    const auto [name, member] = Reading::member(object, i);
    map.emplace(std::string(name), from_value<typename T::mapped_type>(*member, At{&at, name}));
  }
  return map;
}

template <class T>
T enum_from(const json::value& value, const At& at) {
  const std::string_view name = Reading::text(value, at);
  std::optional<T> found;
  for_each_of(boost_enum_descriptor_fn(static_cast<T**>(nullptr)), [&](auto enumerator) {
    if (enumerator.name == name) found = enumerator.value;
  });
  if (!found) Reading::mismatch(at, "'" + std::string(name) + "' is no known value");
  return *found;
}

// The input of a run that an event started: the event is a member of it.
template <class T>
T event_from(const json::value& value, const At& at) {
  const json::value* document = Reading::member(Reading::object(value, at), "event");
  if (!document) Reading::mismatch(at, "is not the input of a workflow that an event started");
  const At event{&at, "event"};
  const json::object& object = Reading::object(*document, event);
  T result{};
  const auto take = [&](auto& member, std::string_view name) {
    const json::value* found = Reading::member(object, name);
    if (found) member = from_value<std::remove_cvref_t<decltype(member)>>(*found, At{&event, name});
  };
  take(result.id, "id");
  take(result.source, "source");
  take(result.type, "type");
  take(result.subject, "subject");
  take(result.data, "data");
  return result;
}

template <class T>
T from_value(const json::value& value, const At& at) {
  if constexpr (is_event_of<T>) {
    return event_from<T>(value, at);
  } else if constexpr (std::same_as<T, json::value>) {
    return Reading::itself(value);
  } else if constexpr (std::same_as<T, json::object>) {
    return Reading::object(value, at);
  } else if constexpr (std::same_as<T, json::array>) {
    return Reading::array(value, at);
  } else if constexpr (Nothing<T>) {
    if (!Reading::is_null(value)) Reading::expected("null", value, at);
    return T{};
  } else if constexpr (std::same_as<T, bool>) {
    return Reading::boolean(value, at);
  } else if constexpr (std::integral<T>) {
    return integer_from<T>(value, at);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(Reading::number(value, at));
  } else if constexpr (std::same_as<T, std::string>) {
    return std::string(Reading::text(value, at));
  } else if constexpr (is_a<T, std::optional>) {
    if (Reading::is_null(value)) return std::nullopt;
    return from_value<typename T::value_type>(value, at);
  } else if constexpr (is_a<T, std::variant>) {
    return variant_from<T>(value, at);
  } else if constexpr (is_a<T, std::pair> || is_a<T, std::tuple> || is_array<T>) {
    return tuple_from<T>(value, at);
  } else if constexpr (is_string_map<T>) {
    return map_from<T>(value, at);
  } else if constexpr (is_a<T, std::vector>) {
    return vector_from<T>(value, at);
  } else if constexpr (DescribedEnum<T>) {
    return enum_from<T>(value, at);
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
  if constexpr (!std::is_void_v<T>) {
    const Reading::Document document(text);
    return from_value<T>(document.root(), At());
  }
}

}  // namespace hapax::detail
