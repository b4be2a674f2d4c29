// Columns of SQLite's tables: the names and types of the fields of core/fields.h, binding them, and reading them back.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "store/columns.h"
#include "store/sqlite/connection.h"

namespace hapax::sqlite {

// The columns of what `list` visits, but for lists: failed attempts have a table of their own, and the turns that a run
// remembers are bound by the caller.
struct ColumnNames {
  std::vector<std::string> names, definitions;  // "worker", "worker TEXT NOT NULL"
};

template <class Value>
constexpr const char* type_of() {
  if constexpr (std::is_same_v<Value, std::string>) return "TEXT";
  if constexpr (std::is_same_v<Value, double>) return "REAL";
  if constexpr (requires(Value value) { value.bytes; }) return "BLOB";
  return "INTEGER";
}

template <class List>
ColumnNames columns_of(List list) {
  ColumnNames columns;
  spread_all(list, [&]<class Value>(const std::string& name, std::type_identity<Value>, bool nullable) {
    if constexpr (!kIsList<Value>) {
      columns.names.push_back(name);
      columns.definitions.push_back(name + " " + type_of<Value>() + (nullable ? "" : " NOT NULL"));
    }
  });
  return columns;
}

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
