#include "http/query.h"

#include <charconv>

#include <fmt/core.h>

#include "http/error.h"
#include "http/router.h"

namespace hapax::http {

namespace {

constexpr std::size_t kMaxParameters = 32;

}  // namespace

Query::Query(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (pair.empty()) continue;
    if (parameters_.size() == kMaxParameters) {
      throw RequestError(400, "InvalidRequest",
                         fmt::format("The query string has more than {} parameters.", kMaxParameters));
    }
    const auto equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), true);
    if (!name)
      throw RequestError(400, "InvalidRequest", "The query string has a name that is not percent-encoded UTF-8.");
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1), true);
    if (!value) throw invalid_parameter(*name, "must be percent-encoded UTF-8");
    for (const Parameter& known : parameters_) {
      if (known.name == *name) throw invalid_parameter(*name, "is given twice");
    }
    parameters_.push_back({*std::move(name), *std::move(value)});
  }
}

std::optional<std::string> Query::string(std::string_view name) {
  for (Parameter& parameter : parameters_) {
    if (parameter.name != name) continue;
    parameter.asked = true;
    if (parameter.value.empty()) throw invalid_parameter(name, "must not be empty");
    return parameter.value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Query::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const auto text = string(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < low || value > high) {
    throw invalid_parameter(name, fmt::format("must be a whole number from {} to {}, not \"{}\"", low, high, *text));
  }
  return value;
}

std::optional<Duration> Query::duration(std::string_view name, Duration high) {
  const auto text = string(name);
  if (!text) return std::nullopt;
  const auto value = parse_duration(*text);
  if (!value) throw invalid_parameter(name, fmt::format("must be a duration like \"30s\", not \"{}\"", *text));
  if (*value > high) throw invalid_parameter(name, fmt::format("must be at most \"{}\"", format_duration(high)));
  return value;
}

std::string Query::required(std::string_view name, std::optional<std::string> value) const {
  if (!value) throw invalid_parameter(name, "is required");
  return *std::move(value);
}

void Query::done() const {
  for (const Parameter& parameter : parameters_) {
    if (!parameter.asked) throw invalid_parameter(parameter.name, "is unknown here");
  }
}

}  // namespace hapax::http
