// Workflow code as data, so that every SDK can run the same code: see README.md.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/workflow.h"
#include "engine/workflows.h"

namespace hapax::protocol {

inline constexpr Time kNow = from_ms(1'767'225'600'000);  // of every turn: 2026-01-01T00:00:00Z

// Runs the code from its start against the history: what a worker would commit.
TurnRequest run_script(const Json& code, const std::vector<Event>& history);

// What of the turn does not depend on the language, as JSON: {"seen","commands","end"}.
std::string describe(const TurnRequest& turn);

}  // namespace hapax::protocol
