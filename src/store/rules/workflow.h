// What happens to workflows, in the rows of whatever store: a turn is committed, a step comes to its end, a timer
// fires, somebody cancels, resumes, forks or signals. Each runs within one transaction of the store.
#pragma once

#include "store/rules/run_rows.h"
#include "store/store.h"

namespace hapax {

TurnOutcome commit_turn(RunRows& rows, const Turn& turn);

// Whether somebody has to be told that this execution was closed: then after_close() must be called, once it is stored.
inline bool concerns_workflows(const Execution& execution) {
  return execution.kind == Kind::workflow || execution.parent.has_value() || execution.awaited;
}

// Tells the workflows that waited for it; a workflow that did not complete takes its open steps with it. Deletes what
// has no retention.
void after_close(RunRows& rows, const Execution& closed, Effects& effects);

// A suspended workflow whose wake_at has come goes on, if anything has come of its waits.
void wake_due(RunRows& rows, Execution run, Effects& effects);

// Runs the operation on its target. What became of it under its request key is the store's to keep.
ControlOutcome control(RunRows& rows, const ControlRequest& request);

// What a store keeps of an operation that ran.
struct PastRequest {
  ControlRequest::Action action = ControlRequest::Action::cancel;
  ExecutionId target;
  std::optional<std::string> workflow_id;
  InputHash parameters;
  ControlOutcome outcome;
};

// The answer to a request whose key was used before.
ControlOutcome answer_again(const PastRequest& past, const ControlRequest& request);

}  // namespace hapax
