// The fields of core/fields.h as columns: their names and types, binding them, and reading them back. A group is spread
// over columns "group_part"; one that is absent is NULL in all of them.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/fields.h"
#include "store/sqlite/connection.h"

namespace hapax::sqlite {

template <class Value>
struct Optional : std::false_type {
  using Held = Value;
};
template <class Value>
struct Optional<std::optional<Value>> : std::true_type {
  using Held = Value;
};

// No columns: failed attempts have a table of their own, and the turns that a run remembers are bound by the caller.
template <class Value>
constexpr bool kIsList = false;
template <class Item>
constexpr bool kIsList<std::vector<Item>> = true;

// Collects "name TYPE NOT NULL" of each column.
class ColumnNames {
 public:
  template <class Value>
  void operator()(const Field& field, const Value&) {
    add<Value>(std::string(field.name), false);
  }

  std::vector<std::string> names, definitions;

 private:
  template <class Value>
  void add(const std::string& name, bool nullable) {
    using Held = typename Optional<Value>::Held;
    const bool may_be_null = nullable || Optional<Value>::value;
    if constexpr (kIsList<Held>) {
      return;
    } else if constexpr (Described<Held>) {
      Held group{};
      fields([&]<class Part>(const Field& part,
                             const Part&) { add<Part>(name + "_" + std::string(part.name), may_be_null); },
             group);
    } else {
      names.push_back(name);
      definitions.push_back(name + " " + type_of<Held>() + (may_be_null ? "" : " NOT NULL"));
    }
  }

  template <class Value>
  static const char* type_of() {
    if constexpr (std::is_same_v<Value, std::string>) return "TEXT";
    if constexpr (std::is_same_v<Value, double>) return "REAL";
    if constexpr (requires(Value value) { value.bytes; }) return "BLOB";
    return "INTEGER";
  }
};

// Binds the columns of what it visits, in order.
class BindColumns {
 public:
  explicit BindColumns(Run& run) : run_(run) {}

  template <class Value>
  void operator()(const Field&, const Value& value) {
    bind(value);
  }

 private:
  template <class Value>
  void bind(const std::optional<Value>& value) {
    value ? bind(*value) : bind_null<Value>();
  }
  template <class Value>
  void bind(const Value& value) {
    if constexpr (kIsList<Value>) {
      return;
    } else if constexpr (Described<const Value>) {
      fields(*this, value);
    } else if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
      run_.bind(static_cast<std::int32_t>(value));
    } else {
      run_.bind(value);
    }
  }
  template <class Value>
  void bind_null() {
    if constexpr (Described<Value>) {
      const Value group{};
      fields([this]<class Part>(const Field&, const Part&) { bind_null<Part>(); }, group);
    } else {
      run_.bind(std::nullopt);
    }
  }

  Run& run_;
};

// Reads the columns of what it visits, in order, from `column` on.
class ReadColumns {
 public:
  explicit ReadColumns(const Run& run, int& column) : run_(run), column_(column) {}

  template <class Value>
  void operator()(const Field&, Value& value) {
    read(value);
  }

 private:
  template <class Value>
  void read(std::optional<Value>& value) {
    if (!run_.is_null(column_)) return read(value.emplace());
    skip<Value>();
  }
  template <class Value>
  void read(Value& value) {
    if constexpr (kIsList<Value>) {
      return;
    } else if constexpr (Described<Value>) {
      fields(*this, value);
    } else {
      run_.read(column_++, value);
    }
  }
  template <class Value>
  void skip() {
    if constexpr (Described<Value>) {
      const Value group{};
      fields([this]<class Part>(const Field&, const Part&) { skip<Part>(); }, group);
    } else {
      ++column_;
    }
  }

  const Run& run_;
  int& column_;
};

}  // namespace hapax::sqlite
