// Reads a server's answers into the engine's values: the inverse of write_answer. Everything here throws
// Failure::corrupt for an answer that does not have the documented shape.
#pragma once

#include "core/json.h"
#include "engine/engine.h"
#include "wire/read_member.h"

namespace hapax::wire {

// Without the lease secret, which an execution's own JSON never has.
Execution read_execution(const Json& document);

Why read_why(const Json& document);
Page read_page(const Json& document);

// An execution with the lease that its claim carries; of a workflow with its events.
Claimed read_claim(const Json& document);

// A receipt, or the error body of a refused submission.
SubmitResult read_submit_result(const Json& document);

ExtendOutcome read_extend_outcome(const Json& document);
FinishOutcome read_finish_outcome(const Json& document);
TurnOutcome read_turn_outcome(const Json& document);
StepsWithinTurns read_steps_within_turns(const Json& document);
UpdateOutcome read_update_outcome(const Json& document);
ControlOutcome read_control_outcome(const Json& document);
QueueView read_queue(const Json& document);
TypeView read_type(const Json& document);
FoundIdentity read_identity(const Json& document);

}  // namespace hapax::wire
