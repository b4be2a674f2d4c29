// A step that its worker begins within the turn that asks for it, before either is stored.
#pragma once

#include <optional>

#include "engine/workflows.h"

namespace hapax {

// As far as its own words go: nothing but its turn decides when it is claimed.
bool may_begin_within_turn(const SubmitRequest& request);

// The step's first attempt, running, and the command with what its commit is to say of it.
Execution begin_step(Execution step, const Execution& run, const TurnWorker& call, TurnRequest::Command& command,
                     Time now);

// For a worker elsewhere: the words of the step, and what came with the claim, decide.
std::optional<Execution> begin_as_allowed(const Execution& run, const TurnWorker& call, TurnRequest::Command& command,
                                          const StepsWithinTurns& allowed, Time now);

}  // namespace hapax
