#include "store/postgres/connection/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace hapax::postgres {

namespace {

// Network byte order.
template <std::size_t kWidth>
void put(char* at, std::uint64_t value) {
  for (std::size_t i = 0; i < kWidth; ++i) at[i] = static_cast<char>(value >> 8 * (kWidth - 1 - i));
}

template <std::size_t kWidth>
void append(std::string& out, std::uint64_t value) {
  std::array<char, kWidth> bytes;
  put<kWidth>(bytes.data(), value);
  out.append(bytes.data(), kWidth);
}

// A value behind its length.
template <std::size_t kWidth>
void append_sized(std::string& out, std::uint64_t value) {
  std::array<char, 4 + kWidth> bytes;
  put<4>(bytes.data(), kWidth);
  put<kWidth>(bytes.data() + 4, value);
  out.append(bytes.data(), bytes.size());
}

void overwrite(std::string& out, std::size_t at, std::uint32_t value) { put<4>(out.data() + at, value); }

// Dimensions, whether there are nulls, the element type; then the length and lower bound of the only dimension.
constexpr std::size_t kNullFlagAt = 4, kCountAt = 12;

constexpr std::uint32_t kNull = 0xffffffffU;  // instead of a length

}  // namespace

Values::Values(Type type, std::uint32_t element_type) : type_(type) {
  append<4>(out_, 1);
  append<4>(out_, 0);
  append<4>(out_, element_type);
  append<4>(out_, 0);
  append<4>(out_, 1);
}

void Values::null() {
  append<4>(out_, kNull);
  has_null_ = true;
  ++count_;
}

void Values::boolean(bool value) {
  append_sized<1>(out_, value ? 1 : 0);
  ++count_;
}

void Values::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  switch (type_) {
    case Type::int2: append_sized<2>(out_, bits); break;
    case Type::int4: append_sized<4>(out_, bits); break;
    default: append_sized<8>(out_, bits);
  }
  ++count_;
}

void Values::real(double value) {
  append_sized<8>(out_, std::bit_cast<std::uint64_t>(value));
  ++count_;
}

void Values::bytes(std::string_view value) {
  append<4>(out_, value.size());
  out_.append(value);
  ++count_;
}

std::string Values::take_array(std::int32_t elements) {
  if (elements == 0) {
    overwrite(out_, 0, 0);
    out_.resize(kCountAt);
  } else {
    overwrite(out_, kNullFlagAt, has_null_ ? 1 : 0);
    overwrite(out_, kCountAt, static_cast<std::uint32_t>(elements));
  }
  return std::move(out_);
}

// The number of the row type is the database's own; the server takes no notice of what is said here for one that is not
// built in.
Batch::Batch(const RowType& type) : Values(type.columns.front().type, 0), row_type_(&type) {}

void Batch::begin_row() {
  end_row();
  row_at_ = out_.size();
  append<4>(out_, 0);  // its length
  append<4>(out_, row_type_->columns.size());
  position_ = 0;
  ++rows_;
}

Values& Batch::next() {
  type_ = row_type_->columns[position_++].type;
  append<4>(out_, static_cast<std::uint32_t>(type_));
  return *this;
}

void Batch::end_row() {
  if (rows_ > 0) overwrite(out_, row_at_, static_cast<std::uint32_t>(out_.size() - row_at_ - 4));
}

std::string Batch::take() {
  end_row();
  has_null_ = false;  // of the rows, none is
  return take_array(std::exchange(rows_, 0));
}

Parameters& Parameters::null() {
  values_.emplace_back();
  return *this;
}

Parameters& Parameters::boolean(bool value) {
  values_.emplace_back(std::string(1, value ? '\1' : '\0'));
  return *this;
}

Parameters& Parameters::int2(std::int64_t value) {
  append<2>(values_.emplace_back(std::string()).value(), static_cast<std::uint64_t>(value));
  return *this;
}

Parameters& Parameters::int4(std::int64_t value) {
  append<4>(values_.emplace_back(std::string()).value(), static_cast<std::uint64_t>(value));
  return *this;
}

Parameters& Parameters::int8(std::int64_t value) {
  append<8>(values_.emplace_back(std::string()).value(), static_cast<std::uint64_t>(value));
  return *this;
}

Parameters& Parameters::bytes(std::string_view value) {
  values_.emplace_back(std::string(value));
  return *this;
}

Parameters& Parameters::array(Array value) {
  values_.emplace_back(value.take());
  return *this;
}

Parameters& Parameters::batch(Batch value) {
  values_.emplace_back(value.take());
  return *this;
}

const char* const* Parameters::values() const {
  pointers_.clear();
  for (const auto& value : values_) pointers_.push_back(value ? value->data() : nullptr);
  return pointers_.data();
}

const int* Parameters::lengths() const {
  lengths_.clear();
  for (const auto& value : values_) lengths_.push_back(value ? static_cast<int>(value->size()) : 0);
  return lengths_.data();
}

const int* Parameters::formats() const {
  formats_.assign(values_.size(), 1);
  return formats_.data();
}

bool Cells::boolean() { return bytes() == std::string_view("\1", 1); }

std::int64_t Cells::integer() {
  const std::string_view found = bytes();
  std::uint64_t value = 0;
  for (const char byte : found) value = value << 8 | static_cast<std::uint8_t>(byte);
  const int missing = 64 - 8 * static_cast<int>(found.size());
  return missing >= 64 ? 0 : static_cast<std::int64_t>(value << missing) >> missing;
}

double Cells::real() { return std::bit_cast<double>(integer()); }

std::string_view Cells::bytes() {
  const int column = column_++;
  return {PQgetvalue(result_, row_, column), static_cast<std::size_t>(PQgetlength(result_, row_, column))};
}

std::optional<std::int64_t> Cells::integer_if() {
  if (is_null()) return skip(), std::nullopt;
  return integer();
}

std::optional<Time> Cells::time_if() {
  if (is_null()) return skip(), std::nullopt;
  return time();
}

std::optional<Duration> Cells::duration_if() {
  if (is_null()) return skip(), std::nullopt;
  return Duration(integer());
}

std::optional<std::string_view> Cells::bytes_if() {
  if (is_null()) return skip(), std::nullopt;
  return bytes();
}

std::optional<std::string> Cells::text_if() {
  if (is_null()) return skip(), std::nullopt;
  return text();
}

}  // namespace hapax::postgres
