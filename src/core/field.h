// Reads the members of a JSON object into typed values, with errors that say where and what.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/rate.h"
#include "core/time.h"

namespace hapax {

// A member that is missing, unknown or of the wrong form. what() is a sentence without the place; pointer() is the
// place.
class InvalidField : public std::runtime_error {
 public:
  InvalidField(std::string pointer, const std::string& message, std::string code = "InvalidRequest")
      : std::runtime_error(message), pointer_(std::move(pointer)), code_(std::move(code)) {}
  const std::string& pointer() const { return pointer_; }
  const std::string& code() const { return code_; }  // of the error that a request gets

 private:
  std::string pointer_, code_;
};

// Reads one object. Ask for every member that may be present, then call done(), which refuses all others. A member that
// is JSON null counts as absent. The names must outlive the reader. Throws InvalidField; the pointers start with `at`.
class FieldReader {
 public:
  explicit FieldReader(const Json& object, std::string at = "");

  // Absent members give nothing; a present one of the wrong form throws.
  std::optional<std::string> string(std::string_view name);
  std::optional<std::string> name(std::string_view name);  // a string that passes check_name
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<bool> boolean(std::string_view name);
  std::optional<Duration> duration(std::string_view name);
  std::optional<Time> time(std::string_view name);
  std::optional<Rate> rate(std::string_view name);
  std::optional<std::vector<std::string>> strings(std::string_view name);
  const Json* object(std::string_view name);
  const Json* array(std::string_view name);
  const Json* any(std::string_view name);  // any value, null included

  // One of the words that `parse` knows; the error lists `words`.
  template <class Parse>
  auto word(std::string_view name, Parse parse, std::string_view words) -> decltype(parse(std::string_view{})) {
    auto text = string(name);
    if (!text) return {};
    auto value = parse(std::string_view(*text));
    if (!value) throw InvalidField(pointer(name), "must be one of " + std::string(words) + ", not \"" + *text + "\"");
    return value;
  }

  template <class T>
  T required(std::string_view name, std::optional<T> value) const {
    if (!value) throw InvalidField(pointer(name), "is required");
    return *std::move(value);
  }

  std::string pointer(std::string_view name) const;
  void done() const;

 private:
  const Json* member(std::string_view name);
  const Json* member(std::string_view name, Json::Kind kind, std::string_view what);

  const Json& object_;
  std::string at_;
  std::vector<std::string_view> asked_;
};

}  // namespace hapax
