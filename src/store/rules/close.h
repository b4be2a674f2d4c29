// How executions end: by a report, by the clock, by a cancel; and how they are deleted.
#pragma once

#include "store/rules/rows.h"

namespace hapax::rules {

// Whether anything waits for this execution to close: then after_close() must be called, once it is stored.
inline bool concerns_workflows(const Execution& execution) {
  return execution.kind == Kind::workflow || execution.parent.has_value() || execution.awaited;
}

// Loads an execution that may be closed: its state, or all of it where closing deletes it.
std::optional<Execution> load_to_close(Rows& rows, const ExecutionId& id);

// Stores the result of a transition of an execution from load_to_close(). If that closed it, notifies waiting
// workflows, and deletes it if its retention is 0. Returns what was deleted.
std::optional<Execution> settle(Rows& rows, Execution execution, Effects& effects);

// Notifies waiting workflows; a workflow that did not complete cancels its open steps. Deletes what has no retention,
// and returns it.
std::optional<Execution> after_close(Rows& rows, const Execution& closed, Effects& effects);

// Ends what is due: a lease, an attempt's timeout, the grace of a cancel, the deadline, a timer.
Effects end_due(Rows& rows, const ExecutionId& id);

// Deletes an execution that is past its retention. False if it must stay: it is open, or a step of an existing run.
bool purge(Rows& rows, const ExecutionId& id);

// So that the report that closed it is recognised when it is repeated.
void remember_report(Rows& rows, const Execution& purged);

}  // namespace hapax::rules
