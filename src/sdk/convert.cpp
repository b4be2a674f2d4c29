#include "hapax/detail/convert.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <charconv>
#include <cmath>

#include "core/canonical_json.h"
#include "core/json.h"

namespace hapax::detail {

namespace {

constexpr std::size_t kMaxDepth = 128;

std::string_view kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return "null";
    case json::kind::bool_: return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_: return "a number";
    case json::kind::string: return "a string";
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "something else";
}

std::string pointer_to(const At& at) {
  if (!at.above) return "";
  return pointer_to(*at.above) + "/" + (at.name.data() ? pointer_step(at.name) : std::to_string(at.index));
}

const json::value kNull;

}  // namespace

void Reading::mismatch(const At& at, const std::string& message) { throw Mismatch(pointer_to(at), message); }

void Reading::expected(std::string_view what, const json::value& got, const At& at) {
  mismatch(at, "expected " + std::string(what) + ", got " + std::string(kind_of(got)));
}

void Reading::no_integer(const json::value& got, const At& at) {
  if (!got.is_number()) expected("a whole number", got, at);
  mismatch(at, json::serialize(got) + " is no whole number in the range of the type");
}

bool Reading::is_null(const json::value& value) { return value.is_null(); }

bool Reading::is_integer(const json::value& value, std::int64_t& number) {
  const auto* found = value.if_int64();
  if (found) number = *found;
  return found;
}

bool Reading::is_integer(const json::value& value, std::uint64_t& number) {
  const auto* found = value.if_uint64();
  if (found) number = *found;
  return found;
}

bool Reading::boolean(const json::value& value, const At& at) {
  if (!value.is_bool()) expected("a boolean", value, at);
  return value.get_bool();
}

double Reading::number(const json::value& value, const At& at) {
  if (!value.is_number()) expected("a number", value, at);
  return value.to_number<double>();
}

std::string_view Reading::text(const json::value& value, const At& at) {
  if (!value.is_string()) expected("a string", value, at);
  const json::string& text = value.get_string();
  return {text.data(), text.size()};
}

const json::object& Reading::object(const json::value& value, const At& at) {
  if (!value.is_object()) expected("an object", value, at);
  return value.get_object();
}

const json::array& Reading::array(const json::value& value, const At& at) {
  if (!value.is_array()) expected("an array", value, at);
  return value.get_array();
}

const json::value* Reading::member(const json::object& object, std::string_view name) {
  return object.if_contains({name.data(), name.size()});
}

std::size_t Reading::size(const json::object& object) { return object.size(); }

std::pair<std::string_view, const json::value*> Reading::member(const json::object& object, std::size_t index) {
  const auto& member = *(object.begin() + static_cast<std::ptrdiff_t>(index));
  return {{member.key().data(), member.key().size()}, &member.value()};
}

std::size_t Reading::size(const json::array& array) { return array.size(); }
const json::value& Reading::element(const json::array& array, std::size_t index) { return array[index]; }

Reading::Document::Document(std::string_view text) : root_(&kNull) {
  if (text.empty()) return;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::system::error_code error;
  auto parsed = std::make_unique<json::value>(json::parse({text.data(), text.size()}, error, {}, options));
  if (error) throw Mismatch("", "is no JSON: " + error.message());
  root_ = parsed.release();
}

Reading::Document::~Document() {
  if (root_ != &kNull) delete root_;
}

void Writing::text(std::string& out, std::string_view text) { append_json_string(out, text); }

void Writing::number(std::string& out, double number) {
  if (!std::isfinite(number)) throw Mismatch("", "a number that is not finite has no JSON");
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void Writing::value(std::string& out, const json::value& value) { out += json::serialize(value); }
void Writing::value(std::string& out, const json::object& object) { out += json::serialize(object); }
void Writing::value(std::string& out, const json::array& array) { out += json::serialize(array); }

void Writing::no_name() { throw Mismatch("", "an enumeration value without a name"); }

}  // namespace hapax::detail
