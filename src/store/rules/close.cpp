#include "core/transition.h"
#include "store/rules/step.h"
#include "store/rules/workflow.h"

namespace hapax {

namespace {

void deliver(RunRows& rows, const ExecutionId& run_id, std::int32_t step, const Execution& closed, Effects& effects) {
  auto run = rows.load(run_id);
  if (!run || run->kind != Kind::workflow || is_closed(run->status)) return;
  Event event = outcome_of(step, closed);
  number(*run, event, rows.now());
  rows.append(run->id, {event});
  wake(*run, effects, rows.now());
  rows.save(*run);
}

Event end_of(const Execution& run) {
  Event event;
  switch (run.status) {
    case Status::completed: event.kind = Event::Kind::completed; break;
    case Status::cancelled: event.kind = Event::Kind::cancelled; break;
    case Status::timed_out: event.kind = Event::Kind::timed_out; break;
    default: event.kind = Event::Kind::failed; break;
  }
  if (run.status == Status::completed) event.value = run.result;
  if (run.status == Status::failed) event.error = run.error;
  return event;
}

void end_history(RunRows& rows, const ExecutionId& id) {
  auto run = rows.load(id);
  if (!run->run.continued_as) {
    Event event = end_of(*run);
    number(*run, event, rows.now());
    rows.append(run->id, {event});
    rows.save(*run);
  }
  rows.erase_waits(id);
}

void cancel_steps(RunRows& rows, const ExecutionId& run, Effects& effects) {
  for (const ExecutionId& id : rows.steps_of(run)) {
    auto step = rows.load(id);
    if (step && !is_closed(step->status)) cancel_open(rows, *step, effects);
  }
}

}  // namespace

void after_close(RunRows& rows, const Execution& closed, Effects& effects) {
  if (closed.kind == Kind::workflow) {
    end_history(rows, closed.id);
    if (closed.status != Status::completed) cancel_steps(rows, closed.id, effects);
  }
  const bool answers = !closed.run.continued_as;  // otherwise the run that it continues as will
  if (closed.parent && answers) deliver(rows, *closed.parent, closed.step, closed, effects);
  if (closed.awaited && answers) {
    for (const Wait& wait : rows.waits_on(closed.id)) {
      rows.erase_wait(wait.run, wait.step);
      deliver(rows, wait.run, wait.step, closed, effects);
    }
  }
  rows.purge_if_unretained(closed.id);
}

}  // namespace hapax
