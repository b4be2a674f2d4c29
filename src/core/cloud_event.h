// CloudEvents 1.0: what an event is, and whether it matches an activity.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/activity.h"
#include "core/hash.h"
#include "core/json.h"

namespace hapax {

struct CloudEvent {
  std::string id;
  bool id_assigned = false;  // it arrived without one
  std::string source;
  std::string type;
  std::optional<std::string> subject;
  // All context attributes and the data in the JSON event format, as its workflows see them.
  Json document;

  // Reads one in the JSON event format, an attribute at a time. One without an id has an empty one afterwards. Throws
  // InvalidField; the pointers start with `at`.
  static CloudEvent parse(const Json& document, const std::string& at = "");

  // Sets the event's id, in its document too.
  void assign_id(std::string new_id);

  // What identifies the event and what a second delivery is compared by: type, source, subject and data. Not its id;
  // nor time, dataschema, datacontenttype, tracing and other extensions, which may differ between deliveries. The same
  // body is the same data with any Content-Type: as JSON, as text that spells it or as Base64 of that.
  EventHash hash() const;

  // The part of its runs' ids that names the event: see DedupeBy.
  std::string occurrence(DedupeBy dedupe_by) const;

  // The `data` member; null if there is none, or if it arrived as `data_base64`.
  const Json* data() const { return document.find("data"); }
};

// Reads one in binary mode: attributes from headers without their `ce-` prefix, lower case and percent-decoded; the
// body is the data. A JSON body (by its content type, or without one if it parses) is data, a text one a JSON string,
// anything else data_base64.
// Throws InvalidField, pointing to "/data" or to the attribute.
CloudEvent read_binary_event(const std::vector<std::pair<std::string, std::string>>& attributes,
                             std::string_view content_type, std::string_view body);

bool matches(const EventTrigger& trigger, const CloudEvent& event);

}  // namespace hapax
