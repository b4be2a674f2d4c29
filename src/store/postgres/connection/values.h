// Values in PostgreSQL's binary format.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/time.h"

namespace hapax::postgres {

// The types that the schema uses, by the numbers PostgreSQL knows them by.
enum class Type : std::uint32_t {
  boolean = 16,
  bytea = 17,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  tid = 27,
  float8 = 701,
  uuid = 2950
};

// Values one after the other, each behind its length. They must be of the type that is due; a number is written in its
// width.
class Values {
 public:
  void null();
  void boolean(bool value);
  void integer(std::int64_t value);
  void real(double value);
  void bytes(std::string_view value);

  template <class Enum>
  void word(Enum value) {
    integer(static_cast<std::int64_t>(value));
  }
  void time(Time value) { integer(to_ms(value)); }
  template <class Fixed>  // an id, a hash, a secret
  void raw(const Fixed& value) {
    bytes({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
  }

  void integer_if(const std::optional<std::int64_t>& value) { value ? integer(*value) : null(); }
  void duration_if(const std::optional<Duration>& value) { value ? integer(value->count()) : null(); }
  void time_if(const std::optional<Time>& value) { value ? time(*value) : null(); }
  void bytes_if(const std::optional<std::string>& value) { value ? bytes(*value) : null(); }
  template <class Fixed>
  void raw_if(const std::optional<Fixed>& value) {
    value ? raw(*value) : null();
  }

 protected:
  Values(Type type, std::uint32_t element_type);

  std::string take_array(std::int32_t elements);

  Type type_;
  std::int32_t count_ = 0;
  bool has_null_ = false;
  std::string out_;
};

// One array parameter: a column of a batch.
class Array : public Values {
 public:
  explicit Array(Type type) : Values(type, static_cast<std::uint32_t>(type)) {}

  std::int32_t size() const { return count_; }
  std::string take() { return take_array(count_); }
};

struct Column {
  std::string name;
  Type type;
  bool nullable = true;
};

// A type of the schema's for the rows of a batch.
struct RowType {
  const char* name;
  std::vector<Column> columns;
};

// A parameter that is an array of rows. To take it apart costs a server half of what as many arrays as there are
// columns do, and where the rows are few, a third.
class Batch : private Values {
 public:
  explicit Batch(const RowType& type);

  std::int32_t rows() const { return rows_; }
  void begin_row();
  Values& next();  // the next column of the row
  std::string take();

 private:
  void end_row();

  const RowType* row_type_;
  std::int32_t rows_ = 0;
  std::size_t row_at_ = 0;
  std::size_t position_ = 0;
};

// The parameters of one statement, from $1 on.
class Parameters {
 public:
  Parameters& null();
  Parameters& boolean(bool value);
  Parameters& int2(std::int64_t value);
  Parameters& int4(std::int64_t value);
  Parameters& int8(std::int64_t value);
  Parameters& bytes(std::string_view value);
  Parameters& array(Array value);
  Parameters& batch(Batch value);

  Parameters& int8_if(const std::optional<std::int64_t>& value) { return value ? int8(*value) : null(); }
  Parameters& time(Time value) { return int8(to_ms(value)); }
  Parameters& time_if(const std::optional<Time>& value) { return value ? time(*value) : null(); }
  Parameters& bytes_if(const std::optional<std::string>& value) { return value ? bytes(*value) : null(); }
  template <class Fixed>
  Parameters& raw(const Fixed& value) {
    return bytes({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
  }
  template <class Fixed>
  Parameters& raw_if(const std::optional<Fixed>& value) {
    return value ? raw(*value) : null();
  }

  int size() const { return static_cast<int>(values_.size()); }
  const char* const* values() const;
  const int* lengths() const;
  const int* formats() const;

 private:
  std::vector<std::optional<std::string>> values_;
  mutable std::vector<const char*> pointers_;
  mutable std::vector<int> lengths_, formats_;
};

// What a statement gave back.
class Rows {
 public:
  Rows() = default;
  explicit Rows(PGresult* result) : result_(result) {}

  int size() const { return result_ ? PQntuples(result_.get()) : 0; }
  bool empty() const { return size() == 0; }
  const PGresult* result() const { return result_.get(); }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

// Reads one row from left to right.
class Cells {
 public:
  Cells(const Rows& rows, int row) : result_(rows.result()), row_(row) {}

  bool is_null() const { return PQgetisnull(result_, row_, column_) != 0; }
  void skip(int columns = 1) { column_ += columns; }

  bool boolean();
  std::int64_t integer();  // of any width
  double real();
  std::string_view bytes();  // as long as the rows are there
  std::string text() { return std::string(bytes()); }
  Time time() { return from_ms(integer()); }

  template <class Enum>
  Enum word() {
    return static_cast<Enum>(integer());
  }
  template <class Fixed>
  Fixed raw() {
    Fixed value;
    const std::string_view found = bytes();
    std::memcpy(value.bytes.data(), found.data(), std::min(found.size(), value.bytes.size()));
    return value;
  }

  std::optional<std::int64_t> integer_if();
  std::optional<Time> time_if();
  std::optional<Duration> duration_if();
  std::optional<std::string> text_if();
  std::optional<std::string_view> bytes_if();  // as long as the rows are there
  template <class Fixed>
  std::optional<Fixed> raw_if() {
    if (is_null()) return skip(), std::nullopt;
    return raw<Fixed>();
  }

 private:
  const PGresult* result_;
  int row_;
  int column_ = 0;
};

}  // namespace hapax::postgres
