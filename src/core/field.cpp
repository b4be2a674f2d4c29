#include "core/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/canonical_json.h"
#include "core/name.h"

namespace hapax {

namespace {

constexpr std::size_t kUsualMembers = 32;  // of the largest objects: one allocation

// 10.0 and 1e3 are integers too, as in JSON Schema and in clients with only one type of number.
std::optional<std::int64_t> as_whole_number(const Json& value) {
  if (const auto integer = value.as_int()) return integer;
  constexpr double kLargestExact = 9'007'199'254'740'992;  // 2^53
  const auto number = value.as_double();
  if (!number || std::abs(*number) >= kLargestExact || std::trunc(*number) != *number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

}  // namespace

InvalidField InvalidField::told(Place place, std::string name, const std::string& message, std::string code) {
  InvalidField error(place, std::move(name), message, std::move(code));
  error.is_sentence_ = true;
  return error;
}

const std::string& InvalidField::no_pointer() {
  static const std::string kNone;
  return kNone;
}

std::string InvalidField::sentence() const {
  if (is_sentence_) return what();
  switch (place_) {
    case Place::parameter: return fmt::format("The parameter \"{}\" {}.", name_, what());
    case Place::header: return fmt::format("The header {} {}.", name_, what());
    case Place::body: break;
  }
  return name_.empty() ? fmt::format("The body {}.", what()) : fmt::format("The field \"{}\" {}.", name_, what());
}

FieldReader::FieldReader(const Json& object, std::string at) : object_(object), at_(std::move(at)) {
  if (!object_.is(Json::Kind::object)) throw InvalidField(at_, "must be an object");
  asked_.reserve(kUsualMembers);
}

std::string FieldReader::pointer(std::string_view name) const { return at_ + "/" + pointer_step(name); }

const Json* FieldReader::any(std::string_view name) {
  asked_.push_back(name);
  return object_.find(name);
}

const Json* FieldReader::member(std::string_view name) {
  const Json* value = any(name);
  return value != nullptr && value->is(Json::Kind::null) ? nullptr : value;
}

const Json* FieldReader::member(std::string_view name, Json::Kind kind, std::string_view what) {
  const Json* value = member(name);
  if (value != nullptr && !value->is(kind)) throw InvalidField(pointer(name), fmt::format("must be {}", what));
  return value;
}

std::optional<std::string> FieldReader::string(std::string_view name) {
  const Json* value = member(name, Json::Kind::string, "a string");
  if (value == nullptr) return std::nullopt;
  return value->text;
}

std::optional<std::string> FieldReader::name(std::string_view name) {
  auto text = string(name);
  if (!text) return std::nullopt;
  if (const auto wrong = check_name(*text)) throw InvalidField(pointer(name), *wrong);
  return text;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const auto what = [&] { return fmt::format("must be an integer from {} to {}", low, high); };
  const Json* value = member(name);
  if (value == nullptr) return std::nullopt;
  const auto number = as_whole_number(*value);
  if (!number || *number < low || *number > high) throw InvalidField(pointer(name), what());
  return number;
}

std::optional<double> FieldReader::number(std::string_view name, double low, double high) {
  const Json* value = member(name);
  if (value == nullptr) return std::nullopt;
  const auto number = value->as_double();
  if (!number || *number < low || *number > high) {
    throw InvalidField(pointer(name),
                       fmt::format("must be a number from {} to {}", canonical_number(low), canonical_number(high)));
  }
  return number;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const Json* value = member(name, Json::Kind::boolean, "true or false");
  if (value == nullptr) return std::nullopt;
  return value->boolean;
}

std::optional<Duration> FieldReader::duration(std::string_view name) {
  constexpr std::string_view kWhat = "a duration such as \"500ms\", \"30s\", \"1h30m\" or \"7d\", of at most 100 years";
  const Json* value = member(name, Json::Kind::string, kWhat);
  if (value == nullptr) return std::nullopt;
  const auto duration = parse_duration(value->text);
  if (!duration) throw InvalidField(pointer(name), fmt::format("must be {}", kWhat));
  return duration;
}

std::optional<Time> FieldReader::time(std::string_view name) {
  constexpr std::string_view kWhat = "an RFC 3339 time such as \"2026-01-27T12:00:00Z\"";
  const Json* value = member(name, Json::Kind::string, kWhat);
  if (value == nullptr) return std::nullopt;
  const auto time = parse_time(value->text);
  if (!time) throw InvalidField(pointer(name), fmt::format("must be {}", kWhat));
  return time;
}

std::optional<Rate> FieldReader::rate(std::string_view name) {
  constexpr std::string_view kWhat = "a rate such as \"100/sec\", \"500/min\", \"10000/hour\" or \"5/day\"";
  const Json* value = member(name, Json::Kind::string, kWhat);
  if (value == nullptr) return std::nullopt;
  const auto rate = parse_rate(value->text);
  if (!rate) throw InvalidField(pointer(name), fmt::format("must be {}", kWhat));
  return rate;
}

std::optional<std::vector<std::string>> FieldReader::strings(std::string_view name) {
  const Json* value = array(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> strings;
  for (const auto& item : value->items) {
    if (!item.is(Json::Kind::string)) {
      throw InvalidField(fmt::format("{}/{}", pointer(name), strings.size()), "must be a string");
    }
    strings.push_back(item.text);
  }
  return strings;
}

const Json* FieldReader::object(std::string_view name) { return member(name, Json::Kind::object, "an object"); }

const Json* FieldReader::array(std::string_view name) { return member(name, Json::Kind::array, "an array"); }

void FieldReader::done() const {
  for (const auto& [name, value] : object_.members) {
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    const std::set<std::string_view> known(asked_.begin(), asked_.end());
    if (known.empty()) throw InvalidField(pointer(name), "is not known here; this object takes no fields");
    throw InvalidField(pointer(name), fmt::format("is not known here; known are {}", fmt::join(known, ", ")));
  }
}

}  // namespace hapax
