// What a client asks, as JSON: the other side of http/parse_request.
#pragma once

#include <span>
#include <string>

#include "engine/engine.h"

namespace hapax::wire {

std::string write_submit(const SubmitRequest& request);
std::string write_batch(std::span<const SubmitRequest> requests);
std::string write_claim_call(const ClaimCall& call);
std::string write_heartbeat(std::span<const Extension> extensions, Duration lease);
std::string write_finish(std::span<const Report> reports);

}  // namespace hapax::wire
