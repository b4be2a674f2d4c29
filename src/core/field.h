// Reads the members of a JSON object into typed values, with errors that say where and what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "core/json.h"
#include "core/rate.h"
#include "core/time.h"

namespace hapax {

// A part of a request that is missing, unknown or of the wrong form. what() says what is wrong without the place,
// sentence() says both. The same request again does not help.
class InvalidField : public Failure {
 public:
  // Where the HTTP API has it: in the body, in the path or query, or in a header.
  enum class Place : std::uint8_t { body, parameter, header };

  InvalidField(std::string pointer, const std::string& message, std::string code = "InvalidRequest")
      : InvalidField(Place::body, std::move(pointer), message, std::move(code)) {}
  InvalidField(Place place, std::string name, const std::string& message, std::string code = "InvalidRequest")
      : Failure(Code::misuse, message), place_(place), name_(std::move(name)), code_(std::move(code)) {}

  // One that a server told of: `message` is its whole sentence.
  static InvalidField told(Place place, std::string name, const std::string& message, std::string code);

  Place place() const { return place_; }
  const std::string& pointer() const { return place_ == Place::body ? name_ : no_pointer(); }  // the JSON Pointer
  const std::string& name() const { return name_; }  // the pointer, or the name of the parameter or header
  const std::string& code() const { return code_; }  // of the error that a request gets
  std::string sentence() const;

 private:
  static const std::string& no_pointer();

  Place place_;
  std::string name_, code_;
  bool is_sentence_ = false;  // what() has the place, too
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
