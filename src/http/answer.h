// Answers that several routes give.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "http/message.h"
#include "http/parse_request.h"

namespace hapax::http {

inline constexpr std::string_view kLeaseLost = "LeaseLost";
inline constexpr std::string_view kLeaseLostMessage =
    "The lease is not that of the running attempt: the attempt was taken away, or its task is closed. Nothing was "
    "changed.";

// 201 created, 200 duplicate or dry run, 4xx refused.
Response submit_response(std::vector<SubmitResult> results);

// A page of executions, newest first. Reads, so it runs on the read pool.
Response list_response(Engine& engine, ListRequest request);

// 200 closed, 202 not yet.
Response result_response(const Execution& execution);

// The leases as sent, and which of them are tokens: only those go to the engine, the rest is lost from the start.
struct Leases {
  std::vector<std::string> texts;
  std::vector<bool> known;
};

int control_status(ControlOutcome::Kind kind);

}  // namespace hapax::http
