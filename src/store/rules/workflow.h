// What happens to workflows: a turn is committed, a timer fires, somebody cancels, resumes, forks or signals.
#pragma once

#include "store/rules/rows.h"

namespace hapax::rules {

TurnOutcome commit_turn(Rows& rows, const Turn& turn);

// A suspended workflow whose wake_at has passed continues, if any of its waits has an outcome.
void wake_due(Rows& rows, Execution run, Effects& effects);

// Runs the operation and keeps its outcome under the request key; a key that was used before gets that outcome again.
ControlOutcome control(Rows& rows, const ControlRequest& request);

}  // namespace hapax::rules
