// What the store writes into its objects and reads back. Each type lists its fields once, for both directions: those of
// executions and histories in core/fields.h, the store's own in documents.cpp. Absent optionals are not written; a
// field that is missing keeps its default. Reading throws Failure::corrupt on what this program never writes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/failure.h"
#include "core/fields.h"
#include "core/hash.h"
#include "core/hex.h"
#include "core/id.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "core/lease.h"
#include "core/time.h"

namespace hapax::s3 {

[[noreturn]] void malformed(std::string_view member);

// Words for an enumeration: specialised as `static constexpr auto kWords = std::to_array<std::string_view>({…})`.
template <class Enum>
struct Words;

class Writer {
 public:
  template <class Value>
  void operator()(const Field& field, const Value& value) {
    (*this)(field.name, value);
  }
  template <class Value>
  void operator()(std::string_view name, const Value& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) write_member(name, *value);
    } else {
      write_member(name, value);
    }
  }

  template <class Object>
  static std::string text(const Object& object) {
    Writer writer;
    writer.write(object);
    return writer.json_.take();
  }

 private:
  template <class Value>
  void write_member(std::string_view name, const Value& value) {
    json_.key(name);
    write(value);
  }

  void write(const std::string& value) { json_.string(value); }
  void write(bool value) { json_.boolean(value); }
  void write(double value) { json_.number(value); }
  void write(std::int32_t value) { json_.integer(value); }
  void write(std::int64_t value) { json_.integer(value); }
  void write(Duration value) { json_.integer(value.count()); }
  void write(Time value) { json_.string(format_time(value)); }
  void write(const ExecutionId& value) { json_.string(value.to_string()); }
  template <class Tag>
  void write(const Hash<Tag>& value) {
    json_.string(value.to_string());
  }
  template <std::size_t n>
  void write(const std::array<std::uint8_t, n>& bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) append_hex(text, byte);
    json_.string(text);
  }
  void write(const LeaseSecret& value) { write(value.bytes); }
  template <class Item>
  void write(const std::vector<Item>& items) {
    json_.begin_array();
    for (const Item& item : items) write(item);
    json_.end_array();
  }
  template <class Value>
  void write(const Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      json_.string(Words<Value>::kWords.at(static_cast<std::size_t>(value)));
    } else {
      json_.begin_object();
      fields(*this, const_cast<Value&>(value));
      json_.end_object();
    }
  }

  JsonWriter json_;
};

class Reader {
 public:
  explicit Reader(const Json& document) : document_(document) {}

  template <class Value>
  void operator()(const Field& field, Value& value) {
    (*this)(field.name, value);
  }
  template <class Value>
  void operator()(std::string_view name, Value& value) {
    const Json* member = document_.find(name);
    if (!member || member->is(Json::Kind::null)) return;
    if constexpr (requires { value.has_value(); }) {
      read(name, *member, value.emplace());
    } else {
      read(name, *member, value);
    }
  }

  template <class Object>
  static Object object(std::string_view text) {
    try {
      return object<Object>(parse_json(text));
    } catch (const InvalidJson& error) {
      throw Failure(Failure::Code::corrupt, std::string("an object in the bucket is no JSON: ") + error.what());
    }
  }
  template <class Object>
  static Object object(const Json& document) {
    Object object{};
    if (!document.is(Json::Kind::object)) malformed("(an object)");
    Reader reader(document);
    fields(reader, object);
    return object;
  }

 private:
  static const std::string& text(std::string_view name, const Json& json) {
    if (!json.is(Json::Kind::string)) malformed(name);
    return json.text;
  }
  static std::int64_t integer(std::string_view name, const Json& json) {
    const auto value = json.as_int();
    if (!value) malformed(name);
    return *value;
  }

  static void read(std::string_view name, const Json& json, std::string& value) { value = text(name, json); }
  static void read(std::string_view name, const Json& json, bool& value) {
    if (!json.is(Json::Kind::boolean)) malformed(name);
    value = json.boolean;
  }
  static void read(std::string_view name, const Json& json, double& value) {
    const auto number = json.as_double();
    if (!number) malformed(name);
    value = *number;
  }
  static void read(std::string_view name, const Json& json, std::int32_t& value) {
    value = static_cast<std::int32_t>(integer(name, json));
  }
  static void read(std::string_view name, const Json& json, std::int64_t& value) { value = integer(name, json); }
  static void read(std::string_view name, const Json& json, Duration& value) { value = Duration(integer(name, json)); }
  static void read(std::string_view name, const Json& json, Time& value) {
    const auto time = parse_time(text(name, json));
    if (!time) malformed(name);
    value = *time;
  }
  static void read(std::string_view name, const Json& json, ExecutionId& value) {
    const auto id = ExecutionId::parse(text(name, json));
    if (!id) malformed(name);
    value = *id;
  }
  template <class Tag>
  static void read(std::string_view name, const Json& json, Hash<Tag>& value) {
    const auto hash = Hash<Tag>::parse(text(name, json));
    if (!hash) malformed(name);
    value = *hash;
  }
  template <std::size_t n>
  static void read(std::string_view name, const Json& json, std::array<std::uint8_t, n>& bytes) {
    const std::string& digits = text(name, json);
    if (digits.size() != 2 * n) malformed(name);
    for (std::size_t i = 0; i < n; ++i) {
      const auto byte = parse_hex(digits[2 * i], digits[2 * i + 1]);
      if (!byte) malformed(name);
      bytes[i] = *byte;
    }
  }
  static void read(std::string_view name, const Json& json, LeaseSecret& value) { read(name, json, value.bytes); }
  template <class Item>
  static void read(std::string_view name, const Json& json, std::vector<Item>& items) {
    if (!json.is(Json::Kind::array)) malformed(name);
    items.reserve(json.items.size());
    for (const Json& item : json.items) read(name, item, items.emplace_back());
  }
  template <class Value>
  static void read(std::string_view name, const Json& json, Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      const std::string& word = text(name, json);
      const auto& words = Words<Value>::kWords;
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == word) {
          value = static_cast<Value>(i);
          return;
        }
      }
      malformed(name);
    } else {
      value = object<Value>(json);
    }
  }

  const Json& document_;
};

}  // namespace hapax::s3
