// What the engine answers, as JSON.
#pragma once

#include <optional>
#include <string_view>

#include "core/execution.h"
#include "core/json_writer.h"
#include "engine/engine.h"

namespace hapax::http {

// Everything of an execution but its lease secrets.
void write_execution(JsonWriter& out, const Execution& execution);

// What is left of a purged one: id, names, status, times, input hash.
void write_tombstone(JsonWriter& out, const Execution& execution);

void write_receipt(JsonWriter& out, const Receipt& receipt);

// A receipt or the refusal's error body.
void write_submit_result(JsonWriter& out, const SubmitResult& result);

// An execution as its claimer gets it, with the lease token.
void write_claim(JsonWriter& out, const Execution& execution);

// {"id","status","result"?,"error"?,"execution"}
void write_result(JsonWriter& out, const Execution& execution);

void write_queue(JsonWriter& out, const QueueView& queue);
void write_type(JsonWriter& out, const TypeView& type);
void write_identity(JsonWriter& out, const FoundIdentity& found);

}  // namespace hapax::http
