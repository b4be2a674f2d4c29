// Described values (core/fields.h) as bytes: every field in order, without its name. Numbers in their own width, texts
// with their length before them, what may be absent behind a byte that says whether it is there.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/fields.h"

namespace hapax {

class FieldPacker {
 public:
  template <class Value>
  void operator()(const Field&, const Value& value) {
    write(value);
  }

  void write(const std::string& text) {
    write(static_cast<std::int64_t>(text.size()));
    out_ += text;
  }
  void write(std::int64_t number) { write_bytes(static_cast<std::uint64_t>(number), 8); }
  void write(std::int32_t number) { write_bytes(static_cast<std::uint32_t>(number), 4); }
  void write(double number) { write(std::bit_cast<std::int64_t>(number)); }
  void write(Time time) { write(to_ms(time)); }
  void write(Duration duration) { write(static_cast<std::int64_t>(duration.count())); }
  template <std::size_t N>
  void write(const std::array<std::uint8_t, N>& bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), N);
  }
  template <class Value>
  void write(const std::optional<Value>& value) {
    write(value.has_value());
    if (value) write(*value);
  }
  template <class Value>
  void write(const std::vector<Value>& values) {
    write(static_cast<std::int64_t>(values.size()));
    for (const Value& value : values) write(value);
  }
  template <class Value>
  void write(const Value& value) {
    if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
      out_ += static_cast<char>(value);
    } else if constexpr (requires { value.bytes; }) {
      write(value.bytes);
    } else {
      fields(*this, value);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void write_bytes(std::uint64_t number, int count) {
    for (int shift = 0; shift < 8 * count; shift += 8) out_ += static_cast<char>(number >> shift);
  }

  std::string out_;
};

// After the first mismatch it reads only zeros; ended_well() reports it.
class FieldUnpacker {
 public:
  explicit FieldUnpacker(std::string_view text) : rest_(text) {}

  template <class Value>
  void operator()(const Field&, Value& value) {
    read(value);
  }

  void read(std::string& text) { text = take(length()); }
  void read(std::int64_t& number) { number = static_cast<std::int64_t>(read_bytes(8)); }
  void read(std::int32_t& number) { number = static_cast<std::int32_t>(read_bytes(4)); }
  void read(bool& flag) { flag = byte() == 1; }
  void read(double& number) { number = std::bit_cast<double>(get<std::int64_t>()); }
  void read(Time& time) { time = from_ms(get<std::int64_t>()); }
  void read(Duration& duration) { duration = Duration(get<std::int64_t>()); }
  template <std::size_t N>
  void read(std::array<std::uint8_t, N>& bytes) {
    const std::string_view text = take(N);
    std::memcpy(bytes.data(), text.data(), text.size());
  }
  template <class Value>
  void read(std::optional<Value>& value) {
    if (get<bool>()) read(value.emplace());
  }
  template <class Value>
  void read(std::vector<Value>& values) {
    for (std::size_t count = length(); count > 0 && whole_; --count) read(values.emplace_back());
  }
  template <class Value>
  void read(Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      value = static_cast<Value>(byte());
    } else if constexpr (requires { value.bytes; }) {
      read(value.bytes);
    } else {
      fields(*this, value);
    }
  }

  bool ended_well() const { return whole_ && rest_.empty(); }

 private:
  template <class Value>
  Value get() {
    Value value{};
    read(value);
    return value;
  }
  std::uint64_t read_bytes(std::size_t count) {
    const std::string_view bytes = take(count);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
    }
    return value;
  }
  std::uint8_t byte() {
    const std::string_view one = take(1);
    return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
  }
  // Never more than there is left: a list of that many items needs at least as many bytes.
  std::size_t length() {
    const auto number = get<std::int64_t>();
    if (number < 0 || static_cast<std::uint64_t>(number) > rest_.size()) whole_ = false;
    return whole_ ? static_cast<std::size_t>(number) : 0;
  }
  std::string_view take(std::size_t count) {
    if (count > rest_.size()) whole_ = false;
    if (!whole_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  bool whole_ = true;
};

}  // namespace hapax
