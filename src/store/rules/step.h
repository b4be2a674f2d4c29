// What turns, resuming and forking do alike.
#pragma once

#include "store/rules/claim.h"
#include "store/rules/rows.h"

namespace hapax::rules {

// Numbers the event as the run's next and dates it.
void number(Execution& run, Event& event, Time now);

// suspended → pending: something has come.
void wake(Execution& run, Effects& effects, Time now);

// An execution that is claimable, now or later.
void announce(const Execution& execution, Effects& effects);

// The outcome of a step whose execution is gone.
Event expired(std::int32_t step);

// The outcome of a step, from its task or child.
Event outcome_of(std::int32_t step, const Execution& closed);

// Makes the execution the owner of its identity, with the expiry that the entry has.
void give_identity(Rows& rows, const Execution& execution);

// Cancels an open execution, a workflow with its steps and children. False if it was closed or being cancelled.
bool cancel_open(Rows& rows, Execution& execution, Effects& effects);

// The control operations on one target.
ControlOutcome cancel(Rows& rows, Execution target);
ControlOutcome retry(Rows& rows, Execution target);
ControlOutcome resume(Rows& rows, Execution run);
ControlOutcome signal(Rows& rows, Execution run, const ControlRequest& request);
ControlOutcome fork(Rows& rows, const Execution& run, const ControlRequest& request);

// The closed task or child of a step continues: a task with new attempts, a workflow where it stopped. Neither may have
// completed. If its identity has another owner by now, the step shares that one.
void revive(Rows& rows, Execution& run, std::int32_t step, Execution closed, std::vector<Event>& outcomes,
            Effects& effects);

// Starts the task or child of a command of that run, or finds the one that it shares. Sets `command.execution`; if
// there is an outcome already, it is appended to `outcomes`. A key that replaces its owner may hit a step of this run,
// or the run itself: then `run` is closed afterwards.
void start_step(Rows& rows, Execution& run, Event& command, Submission submission, std::vector<Event>& outcomes,
                Effects& effects);

// Stores a task of that run which its worker began within the turn, and of which there is none yet.
Execution store_begun(Rows& rows, const Execution& run, const Turn::Start& start);

// The step waits for an execution that was there before.
void wait_on(Rows& rows, Execution& run, std::int32_t step, const ExecutionId& execution);

// Ends a step of this run that is open: a wait at once, a task or child as by a cancel.
void cancel_step(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects);

// Delivers a signal to the workflow that the command names; its outcome says whether it is there.
void send_signal(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects);

// The run that this one has come to by now.
std::optional<Execution> latest(Rows& rows, const ExecutionId& id);

// Begins the wait of a sleep or a signal; a signal that was there already is its outcome.
void start_wait(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes);

}  // namespace hapax::rules
