// Writes the engine's answers as JSON: the inverse of read_answer.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/json_writer.h"
#include "engine/engine.h"

namespace hapax::wire {

// Everything of an execution except its lease secrets.
void write_execution(JsonWriter& out, const Execution& execution);
// The same with the log of its attempt, which may be long: for answers about one execution.
void write_execution_with_log(JsonWriter& out, const Execution& execution);

// {"executions","damaged"?,"next_cursor"}
void write_why(JsonWriter& out, const Why& why);
void write_page(JsonWriter& out, const Page& page);

// What is left of a purged one, and all that a receipt says with result_omitted: id, names, status, times, input hash.
void write_tombstone(JsonWriter& out, const Execution& execution);

void write_receipt(JsonWriter& out, const Receipt& receipt);

// {"error","message",…}: the owner for a 409, the "pointer" to the field for a 400.
void write_refusal(JsonWriter& out, const Refusal& refusal);

// A receipt or a refusal.
void write_submit_result(JsonWriter& out, const SubmitResult& result);

// An execution for its claimer, with the lease token; a workflow with the events that its last turn did not know.
void write_claim_of(JsonWriter& out, const Execution& execution, const std::vector<Event>& events);
inline void write_claim(JsonWriter& out, const Claimed& claimed) {
  write_claim_of(out, claimed.execution, claimed.events);
}

// {"id","workflow_id"?,"status","result"?,"error"?,"execution"}
void write_result(JsonWriter& out, const Execution& execution);

// {"id","status","changed","idempotency_replayed"}, or the error body. `target` is the id as the caller wrote it.
void write_control(JsonWriter& out, std::string_view target, const ControlOutcome& outcome);

// {"workflow_id",…,"execution_id","status","changed","idempotency_replayed"}, or the error body. The request names the
// workflow; a fork's also the new one.
void write_workflow_control(JsonWriter& out, const ControlRequest& request, const ControlOutcome& outcome);

// {"workflow_id","update",…,"status":"completed" or "pending","result"?,"idempotency_replayed"}, or the error body.
void write_update_outcome(JsonWriter& out, const UpdateRequest& request, const UpdateOutcome& outcome);

void write_queue(JsonWriter& out, const QueueView& queue);
void write_type(JsonWriter& out, const TypeView& type);
void write_identity(JsonWriter& out, const FoundIdentity& found);

}  // namespace hapax::wire
