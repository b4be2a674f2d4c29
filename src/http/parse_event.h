// CloudEvents as they come over HTTP: structured, batch and binary mode, read into the engine's values.
#pragma once

#include <vector>

#include "core/cloud_event.h"
#include "http/message.h"

namespace hapax::http {

inline constexpr std::string_view kEventType = "application/cloudevents+json";
inline constexpr std::string_view kEventBatchType = "application/cloudevents-batch+json";

// The mode is told by the Content-Type, and where that names no event format, by headers that begin with ce-. One
// event, or those of a batch, which may have none and up to Activities::kMaxEvents. Throws RequestError (415 for
// anything else) or InvalidField, in a batch with the event's place ("/3/type").
std::vector<CloudEvent> parse_events(const Request& request);

}  // namespace hapax::http
