// JSON: strict, exact, with the position of errors. Numbers keep their literal, so no integer is ever rounded through a
// double.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hapax {

// A parsed document. A plain value; members stay in their original order.
struct Json {
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::string text;                                   // a string's characters, or a number's literal as written
  std::vector<Json> items;                            // of an array
  std::vector<std::pair<std::string, Json>> members;  // of an object

  // Defined once the class is complete: clang cannot derive them while a vector of it is still incomplete.
  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  bool is(Kind k) const { return kind == k; }

  // The member of that name, or null; also null if this is not an object.
  const Json* find(std::string_view name) const;

  // The value an RFC 6901 pointer leads to ("" is the document itself), or null.
  const Json* at(std::string_view pointer) const;

  // The number as an integer: only if it was written as one (no fraction, no exponent) and fits.
  std::optional<std::int64_t> as_int() const;
  // The number as a double. Finite: parse_json refuses a number that is not.
  std::optional<double> as_double() const;
};

inline Json::Json() = default;
inline Json::Json(const Json&) = default;
inline Json::Json(Json&&) noexcept = default;
inline Json& Json::operator=(const Json&) = default;
inline Json& Json::operator=(Json&&) noexcept = default;
inline Json::~Json() = default;

// Text that is not JSON, or not JSON that Hapax accepts. what() is a sentence that names line and column.
class InvalidJson : public std::runtime_error {
 public:
  InvalidJson(const std::string& message, std::size_t offset) : std::runtime_error(message), offset_(offset) {}
  std::size_t offset() const { return offset_; }  // in bytes

 private:
  std::size_t offset_;
};

// Reads one RFC 8259 document. Throws InvalidJson on: malformed JSON or UTF-8, a lone surrogate, a member named twice
// in one object, a number beyond the range of a double (unless it is an integer), more than 128 levels, an integer of
// more than 1,000 digits, or anything but blanks after the document.
Json parse_json(std::string_view text);

// True for an RFC 6901 pointer: empty, or starting with "/" and with ~ only as ~0 and ~1.
bool is_json_pointer(std::string_view text);

// A member name, escaped as one step of a pointer.
std::string pointer_step(std::string_view name);

}  // namespace hapax
