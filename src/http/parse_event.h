// CloudEvents over HTTP: structured, batch and binary mode, read into the engine's values.
#pragma once

#include <vector>

#include "core/cloud_event.h"
#include "http/message.h"

namespace hapax::http {

inline constexpr std::string_view kEventType = "application/cloudevents+json";
inline constexpr std::string_view kEventBatchType = "application/cloudevents-batch+json";

// The Content-Type decides the mode; if it names no event format, headers that begin with ce- do. Returns one event, or
// those of a batch, which has up to Activities::kMaxEvents and may be empty. Throws RequestError (415 for anything
// else) or InvalidField, in a batch with the event's place ("/3/type").
std::vector<CloudEvent> parse_events(const Request& request);

}  // namespace hapax::http
