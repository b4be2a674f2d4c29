// Writes a client's requests as JSON: the inverse of http/parse_request.
#pragma once

#include <span>
#include <string>

#include "core/json_writer.h"
#include "engine/engine.h"

namespace hapax::wire {

// A workflow's key is its "workflow_id".
void write_submit(JsonWriter& out, const SubmitRequest& request);
std::string write_submit(const SubmitRequest& request);
std::string write_batch(std::span<const SubmitRequest> requests);
std::string write_claim_call(const ClaimCall& call);
std::string write_heartbeat(std::span<const Extension> extensions, Duration lease);
std::string write_return(std::span<const Extension> extensions);
void write_report(JsonWriter& out, const Report& report);
std::string write_finish(std::span<const Report> reports);
std::string write_turns(const std::vector<TurnRequest>& turns);

// The parameters of a workflow's control operation.
std::string write_control_request(const ControlRequest& request);

}  // namespace hapax::wire
