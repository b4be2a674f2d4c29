// How executions end: by a report, by the clock, by a cancel; and how they are deleted.
#pragma once

#include "store/rules/rows.h"

namespace hapax::rules {

// Whether somebody has to be told that this execution was closed: then after_close() must be called, once it is stored.
inline bool concerns_workflows(const Execution& execution) {
  return execution.kind == Kind::workflow || execution.parent.has_value() || execution.awaited;
}

// Loads an execution that may be closed: its state, or all of it where closing deletes it.
std::optional<Execution> load_to_close(Rows& rows, const ExecutionId& id);

// Stores what a transition made of an execution from load_to_close(). If that closed it, tells the workflows that
// waited for it, and deletes it if it has no retention. Gives back what was deleted.
std::optional<Execution> settle(Rows& rows, Execution execution, Effects& effects);

// Tells the workflows that waited for it; a workflow that did not complete takes its open steps with it. Deletes what
// has no retention, and gives that back.
std::optional<Execution> after_close(Rows& rows, const Execution& closed, Effects& effects);

// Ends what has become due: a lease, an attempt's timeout, the grace of a cancel, the deadline, a timer.
Effects end_due(Rows& rows, const ExecutionId& id);

// Deletes an execution that is past its retention. False if it must stay: it is open, or a step of a run that is there.
bool purge(Rows& rows, const ExecutionId& id);

// So that the report that closed it is recognised when it comes again.
void remember_report(Rows& rows, const Execution& purged);

}  // namespace hapax::rules
