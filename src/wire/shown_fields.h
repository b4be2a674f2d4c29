// The fields of core/fields.h that the API shows, as members of a JSON object: writing them, and reading them back.
// Secrets and other values without a form in JSON are never shown.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/canonical_json.h"
#include "core/fields.h"
#include "core/json_writer.h"
#include "wire/read_member.h"

namespace hapax::wire {

class WriteShown {
 public:
  explicit WriteShown(JsonWriter& out) : out_(out) {}

  template <class Value>
  void operator()(const Field& field, const Value& value) {
    if (field.shown == Field::Shown::no) return;
    if constexpr (requires { value.has_value(); }) {
      if (!value && field.shown == Field::Shown::if_there) return;
      out_.key(field.api_name());
      value ? write(field, *value) : void(out_.null());
    } else {
      out_.key(field.api_name());
      write(field, value);
    }
  }

 private:
  template <class Item>
  void write(const Field& field, const std::vector<Item>& items) {
    out_.begin_array();
    for (const Item& item : items) write(field, item);
    out_.end_array();
  }
  template <class Value>
  void write(const Field& field, const Value& value) {
    if constexpr (Described<const Value>) {
      out_.begin_object();
      fields(*this, value);
      out_.end_object();
    } else if constexpr (std::is_same_v<Value, std::string>) {
      field.is_json ? out_.raw(value) : out_.string(value);
    } else if constexpr (std::is_same_v<Value, Time>) {
      out_.string(format_time(value));
    } else if constexpr (std::is_same_v<Value, Duration>) {
      out_.string(format_duration(value));
    } else if constexpr (std::is_same_v<Value, double>) {
      out_.number(value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      out_.boolean(value);
    } else if constexpr (std::is_integral_v<Value>) {
      out_.integer(value);
    } else if constexpr (requires { value.to_string(); }) {
      out_.string(value.to_string());
    }
  }

  JsonWriter& out_;
};

// Reads what is there; a member that is absent or null leaves its field as it is. Throws Failure::corrupt, as
// read_member.h says.
class ReadShown {
 public:
  explicit ReadShown(const Json& document) : document_(document) {}

  template <class Value>
  void operator()(const Field& field, Value& value) {
    if (field.shown == Field::Shown::no) return;
    const std::string_view name = field.api_name();
    if (field.is_json) {
      if constexpr (std::is_assignable_v<Value&, std::string>) {
        if (const Json* member = document_.find(name)) value = canonical_json(*member);
      }
      return;
    }
    const Json* member = present(document_, name);
    if (!member) return;
    if constexpr (requires { value.has_value(); }) {
      read(name, *member, value.emplace());
    } else {
      read(name, *member, value);
    }
  }

 private:
  template <class Value, class Parse>
  static void parse_into(std::string_view name, const Json& member, Value& value, Parse parse) {
    if (!member.is(Json::Kind::string)) malformed(name);
    auto parsed = parse(member.text);
    if (!parsed) malformed(name);
    value = *std::move(parsed);
  }

  template <class Item>
  static void read(std::string_view name, const Json& member, std::vector<Item>& items) {
    if (!member.is(Json::Kind::array)) malformed(name);
    for (const Json& item : member.items) read(name, item, items.emplace_back());
  }
  template <class Value>
  static void read(std::string_view name, const Json& member, Value& value) {
    if constexpr (Described<Value>) {
      if (!member.is(Json::Kind::object)) malformed(name);
      ReadShown part(member);
      fields(part, value);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      if (!member.is(Json::Kind::string)) malformed(name);
      value = member.text;
    } else if constexpr (std::is_same_v<Value, Time>) {
      parse_into(name, member, value, parse_time);
    } else if constexpr (std::is_same_v<Value, Duration>) {
      parse_into(name, member, value, parse_duration);
    } else if constexpr (std::is_same_v<Value, double>) {
      const auto number = member.as_double();
      if (!number) malformed(name);
      value = *number;
    } else if constexpr (std::is_integral_v<Value>) {
      const auto number = member.as_int();
      if (!number) malformed(name);
      value = static_cast<Value>(*number);
    } else if constexpr (requires { Value::parse(std::string_view()); }) {
      parse_into(name, member, value, [](std::string_view text) { return Value::parse(text); });
    }
  }

  const Json& document_;
};

}  // namespace hapax::wire
