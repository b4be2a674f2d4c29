// Values of which every field that core/fields.h lists differs from its default: whatever forgets a field cannot give
// them back.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/fields.h"

namespace hapax {

class Fill {
 public:
  template <class Value>
  void operator()(const Field& field, Value& value) {
    fill(field, value);
  }

 private:
  template <class Value>
  void fill(const Field& field, std::optional<Value>& value) {
    fill(field, value.emplace());
  }
  template <class Item>
  void fill(const Field& field, std::vector<Item>& items) {
    items.resize(2);
    for (Item& item : items) fill(field, item);
  }
  template <std::size_t n>
  void fill(const Field&, std::array<std::uint8_t, n>& bytes) {
    bytes.fill(static_cast<std::uint8_t>(++count_));
  }
  template <class Value>
  void fill(const Field& field, Value& value) {
    if constexpr (Described<Value>) {
      fields(*this, value);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = field.is_json ? "{\"n\":" + std::to_string(++count_) + "}" : "text " + std::to_string(++count_);
    } else if constexpr (std::is_same_v<Value, Time>) {
      value = from_ms(1'700'000'000'000 + ++count_);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = true;
    } else if constexpr (std::is_enum_v<Value>) {
      value = static_cast<Value>(1);
    } else if constexpr (requires { value.bytes; }) {
      fill(field, value.bytes);
    } else {
      value = Value(100 + ++count_);
    }
  }

  std::int32_t count_ = 0;
};

template <class Value>
Value filled() {
  Value value;
  fields(Fill{}, value);
  return value;
}

}  // namespace hapax
