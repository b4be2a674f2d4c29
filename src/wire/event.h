// The events of a workflow's history as JSON, both ways.
#pragma once

#include "core/json.h"
#include "core/json_writer.h"
#include "core/workflow.h"

namespace hapax::wire {

// {"no","at","kind"} and what else the event has: "step", "name", "key", "execution_id", "until", "status", "value",
// "error".
void write_error(JsonWriter& out, const AttemptError& error);  // as an object
void write_event(JsonWriter& out, const Event& event);

// Throws Failure::corrupt for what write_event does not write.
Event read_event(const Json& document);

}  // namespace hapax::wire
