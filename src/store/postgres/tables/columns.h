// Columns of PostgreSQL's tables: the names and types of the fields of core/fields.h, writing them into a batch, and
// reading them back. Payloads are behind a checksum (sealed.h), and a list is one value.
#pragma once

#include <type_traits>
#include <vector>

#include "core/failure.h"
#include "store/columns.h"
#include "store/packed_fields.h"
#include "store/postgres/connection/values.h"
#include "store/postgres/tables/sealed.h"

namespace hapax::postgres {

template <class Value>
constexpr Type type_of() {
  if constexpr (std::is_same_v<Value, bool>) return Type::boolean;
  if constexpr (std::is_same_v<Value, std::int32_t>) return Type::int4;
  if constexpr (std::is_same_v<Value, double>) return Type::float8;
  if constexpr (std::is_same_v<Value, ExecutionId>) return Type::uuid;
  if constexpr (std::is_enum_v<Value>) return Type::int2;
  if constexpr (kIsList<Value> || std::is_same_v<Value, std::string> || requires(Value value) { value.bytes; })
    return Type::bytea;
  return Type::int8;
}

template <class List>
std::vector<Column> columns_of(List list) {
  std::vector<Column> columns;
  spread_all(list, [&]<class Value>(const std::string& name, std::type_identity<Value>, bool nullable) {
    columns.push_back({name, type_of<Value>(), nullable || kIsList<Value>});
  });
  return columns;
}

// Writes the columns of what it visits, in order. `damaged`: what is written is to stay so.
class WriteColumns {
 public:
  explicit WriteColumns(Batch& batch, bool damaged = false) : batch_(batch), damaged_(damaged) {}

  template <class Value>
  void operator()(const Field& field, const Value& value) {
    if constexpr (std::is_same_v<Value, std::optional<std::string>>) {
      if (field.is_json) return batch_.next().bytes_if(seal_json(value, damaged_));
    }
    write(value);
  }

  // NULL in every column of a value of that type.
  template <class Value>
  void nulls() {
    each_column<Value>([this] { batch_.next().null(); });
  }

 private:
  template <class Value>
  void write(const std::optional<Value>& value) {
    value ? write(*value) : nulls<Value>();
  }
  void write(const AttemptError& error) {
    batch_.next().bytes(error.type);
    batch_.next().bytes(seal_message(error, damaged_));
    batch_.next().bytes_if(error.stack);
    batch_.next().bytes_if(error.details);
  }
  template <class Item>
  void write(const std::vector<Item>& items) {
    if (items.empty()) return batch_.next().null();
    FieldPacker packer;
    packer.write(items);
    batch_.next().bytes(seal_list(packer.take(), damaged_));
  }
  template <class Value>
  void write(const Value& value) {
    if constexpr (Described<const Value>) {
      fields(*this, value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      batch_.next().boolean(value);
    } else if constexpr (std::is_same_v<Value, double>) {
      batch_.next().real(value);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      batch_.next().bytes(value);
    } else if constexpr (std::is_same_v<Value, Time>) {
      batch_.next().time(value);
    } else if constexpr (std::is_same_v<Value, Duration>) {
      batch_.next().integer(value.count());
    } else if constexpr (requires { value.bytes; }) {
      batch_.next().raw(value);
    } else {
      batch_.next().integer(static_cast<std::int64_t>(value));
    }
  }

  Batch& batch_;
  bool damaged_;
};

// Reads the columns of what it visits, in order. Sets `damaged` where a payload does not match.
class ReadColumns {
 public:
  ReadColumns(Cells& cells, bool& damaged) : cells_(cells), damaged_(damaged) {}

  template <class Value>
  void operator()(const Field& field, Value& value) {
    if constexpr (std::is_same_v<Value, std::optional<std::string>>) {
      if (field.is_json) {
        value = unseal_json(cells_.bytes_if(), damaged_);
        return;
      }
    }
    read(value);
  }

  // A group that is as it was where its columns are NULL. The first of them tells.
  template <class Group>
  void read_if_there(Group& group) {
    cells_.is_null() ? each_column<Group>([this] { cells_.skip(); }) : read(group);
  }

 private:
  template <class Value>
  void read(std::optional<Value>& value) {
    if (!cells_.is_null()) return read(value.emplace());
    each_column<Value>([this] { cells_.skip(); });
  }
  void read(AttemptError& error) {
    error.type = cells_.text();
    const std::string_view message = cells_.bytes();
    error.stack = cells_.text_if();
    error.details = cells_.text_if();
    unseal_message(error, message, damaged_);
  }
  template <class Item>
  void read(std::vector<Item>& items) {
    const auto stored = cells_.bytes_if();
    if (!stored) return;
    bool is_changed = false;
    FieldUnpacker unpacker(unseal_list(*stored, is_changed));
    if (!is_changed) unpacker.read(items);
    if (is_changed || !unpacker.ended_well()) damaged_ = true;
  }
  template <class Value>
  void read(Value& value) {
    if constexpr (Described<Value>) {
      fields(*this, value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = cells_.boolean();
    } else if constexpr (std::is_same_v<Value, double>) {
      value = cells_.real();
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = cells_.bytes();
    } else if constexpr (std::is_same_v<Value, Time>) {
      value = cells_.time();
    } else if constexpr (requires { value.bytes; }) {
      value = cells_.raw<Value>();
    } else {
      value = static_cast<Value>(cells_.integer());
    }
  }

  Cells& cells_;
  bool& damaged_;
};

}  // namespace hapax::postgres
