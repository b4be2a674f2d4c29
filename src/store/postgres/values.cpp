#include "store/postgres/values.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hapax::postgres {

namespace {

// Network byte order.
void append(std::string& out, std::uint64_t value, int width) {
  for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

void overwrite(std::string& out, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) out[at + i] = static_cast<char>((value >> (24 - 8 * i)) & 0xff);
}

int width_of(Type type) {
  switch (type) {
    case Type::int2: return 2;
    case Type::int4: return 4;
    default: return 8;
  }
}

// Dimensions, whether there are nulls, the element type; then the length and lower bound of the only dimension.
constexpr std::size_t kNullFlagAt = 4, kCountAt = 12;

constexpr std::uint32_t kNull = 0xffffffffU;  // instead of a length

}  // namespace

Values::Values(Type type, std::uint32_t element_type) : type_(type) {
  append(out_, 1, 4);
  append(out_, 0, 4);
  append(out_, element_type, 4);
  append(out_, 0, 4);
  append(out_, 1, 4);
}

void Values::null() {
  append(out_, kNull, 4);
  has_null_ = true;
  ++count_;
}

void Values::boolean(bool value) {
  append(out_, 1, 4);
  append(out_, value ? 1 : 0, 1);
  ++count_;
}

void Values::integer(std::int64_t value) {
  const int width = width_of(type_);
  append(out_, static_cast<std::uint64_t>(width), 4);
  append(out_, static_cast<std::uint64_t>(value), width);
  ++count_;
}

void Values::real(double value) {
  append(out_, 8, 4);
  append(out_, std::bit_cast<std::uint64_t>(value), 8);
  ++count_;
}

void Values::bytes(std::string_view value) {
  append(out_, value.size(), 4);
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
  append(out_, 0, 4);  // its length
  append(out_, row_type_->columns.size(), 4);
  position_ = 0;
  ++rows_;
}

Values& Batch::next() {
  type_ = row_type_->columns[position_++].type;
  append(out_, static_cast<std::uint32_t>(type_), 4);
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
  append(values_.emplace_back(std::string()).value(), static_cast<std::uint64_t>(value), 2);
  return *this;
}

Parameters& Parameters::int4(std::int64_t value) {
  append(values_.emplace_back(std::string()).value(), static_cast<std::uint64_t>(value), 4);
  return *this;
}

Parameters& Parameters::int8(std::int64_t value) {
  append(values_.emplace_back(std::string()).value(), static_cast<std::uint64_t>(value), 8);
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
