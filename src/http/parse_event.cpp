#include "http/parse_event.h"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "core/field.h"
#include "engine/activities.h"
#include "http/error.h"
#include "http/parse_request.h"
#include "http/router.h"

namespace hapax::http {

namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The text within a quoted string of RFC 7230, which older senders use.
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
  std::string out;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

Attributes read_attributes(const Request& request) {
  Attributes attributes;
  for (const auto& [header, value] : request.event_headers) {
    std::string name = lower_case(header);
    const auto known = [&](const auto& attribute) { return attribute.first == name; };
    if (std::any_of(attributes.begin(), attributes.end(), known)) throw invalid_header("ce-" + name, "is given twice");
    if (name == "datacontenttype") throw invalid_header("ce-" + name, "must be absent: the Content-Type says it");
    auto decoded = percent_decode(unquoted(value));
    if (!decoded) throw invalid_header("ce-" + name, "must be percent-encoded UTF-8");
    attributes.emplace_back(std::move(name), *std::move(decoded));
  }
  return attributes;
}

std::vector<CloudEvent> parse_event_batch(const Json& document) {
  if (!document.is(Json::Kind::array)) throw InvalidField("", "must be an array of events");
  if (document.items.size() > Activities::kMaxEvents) {
    throw InvalidField(
        "", fmt::format("must have at most {} events, not {}", Activities::kMaxEvents, document.items.size()));
  }
  std::vector<CloudEvent> events;
  for (const Json& item : document.items) {
    events.push_back(CloudEvent::parse(item, "/" + std::to_string(events.size())));
  }
  return events;
}

RequestError no_event() {
  return {415, "UnsupportedMediaType",
          fmt::format(
              "This is not a CloudEvent: send \"Content-Type: {}\" for one event as JSON, \"{}\" for several, or an "
              "event's data with its attributes in the headers ce-specversion, ce-type, ce-source and ce-id.",
              kEventType, kEventBatchType)};
}

}  // namespace

std::vector<CloudEvent> parse_events(const Request& request) {
  std::vector<CloudEvent> events;
  if (is_media_type(request.content_type, kEventBatchType)) {
    events = parse_event_batch(parse_json_body(request));
  } else if (is_media_type(request.content_type, kEventType)) {
    events.push_back(CloudEvent::parse(parse_json_body(request)));
  } else if (lower_case(request.content_type).starts_with("application/cloudevents") || request.event_headers.empty()) {
    throw no_event();
  } else {
    events.push_back(read_binary_event(read_attributes(request), request.content_type, request.body));
  }
  return events;
}

}  // namespace hapax::http
