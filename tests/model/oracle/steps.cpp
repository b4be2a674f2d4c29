// Spec 4: the steps of a workflow. How they start, what they wait for, and what comes of them.
#include "model/oracle/world.h"

namespace hapax::oracle {

void World::append(Execution& run, Event event) {
  event.no = ++run.run.events;
  event.at = now;
  histories[run.id].push_back(std::move(event));
}

void World::wake(Execution& run, Effects& effects) {
  if (run.status != Status::suspended || waits_for_resume(run)) return;
  run.status = Status::pending;
  run.run_at = now;
  announce(run, effects);
}

Event outcome_of(std::int32_t step, const Execution& closed) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.execution = closed.id;
  event.status = closed.status;
  if (closed.status == Status::completed) {
    event.value = closed.result;
  } else {
    event.error = closed.error;
  }
  return event;
}

Event failed_outcome(std::int32_t step, std::string type, std::string message) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.status = Status::failed;
  event.error = AttemptError{std::move(type), std::move(message)};
  return event;
}

Event expired_outcome(std::int32_t step) {
  return failed_outcome(step, "ResultExpired", "the execution that stood for this step is no longer kept");
}

void World::deliver(const ExecutionId& id, std::int32_t step, const Execution& closed, Effects& effects) {
  Execution* run = find(id);
  if (!run || run->kind != Kind::workflow || is_closed(run->status)) return;
  append(*run, outcome_of(step, closed));
  wake(*run, effects);
}

void World::wait_on(const ExecutionId& run, std::int32_t step, const ExecutionId& execution) {
  waits[{run, step}] = {"", std::nullopt, execution};
  executions.at(execution).awaited = true;
}

// A closed step goes on with new attempts. If its identity has another owner by now, that one stands for it.
void World::revive(const ExecutionId& run, std::int32_t step, Execution& closed, std::vector<Event>& outcomes,
                   Effects& effects) {
  const ControlOutcome revived = retry(closed);
  effects.add(revived.effects);
  if (revived.kind != ControlOutcome::Kind::identity_taken) return;
  const Execution* other = find(*revived.other);
  if (!other) {
    outcomes.push_back(expired_outcome(step));
  } else if (is_closed(other->status)) {
    outcomes.push_back(outcome_of(step, *other));
  } else {
    wait_on(run, step, other->id);
  }
}

void World::start_step(const ExecutionId& run_id, Event& command, Submission submission, std::vector<Event>& outcomes,
                       Effects& effects) {
  const Execution& run = executions.at(run_id);
  Execution& step = submission.execution;
  step.id = step_id(run_id, step.type, command.step);
  step.name_space = run.name_space;
  step.parent = run_id;
  step.step = command.step;
  step.parent_workflow_id = run.idempotency_key.value_or("");

  const SubmitOutcome met = submit(submission);
  command.execution = met.execution.id;
  command.status.reset();
  if (met.superseded) effects.closed.push_back({*met.superseded, step.name_space, step.queue, step.kind, step.type});
  effects.add(met.effects);

  const Status status = met.execution.status;
  if (met.kind == SubmitOutcome::Kind::conflict) {
    const std::string what = step.type != met.execution.type ? "type" : "input";
    outcomes.push_back(
        failed_outcome(command.step, "IdempotencyConflict",
                       "the step's key was used for another " + what + ", by " + met.execution.id.to_string()));
  } else if (met.kind == SubmitOutcome::Kind::duplicate) {
    command.status = status;  // an execution of before stands for the step
    if (met.purged) {
      outcomes.push_back(expired_outcome(command.step));
    } else if (is_closed(status)) {
      outcomes.push_back(outcome_of(command.step, met.execution));
    } else {
      wait_on(run_id, command.step, met.execution.id);
    }
  } else if (status == Status::completed) {  // by an earlier life of this run
    outcomes.push_back(outcome_of(command.step, met.execution));
  } else if (is_closed(status)) {
    revive(run_id, command.step, executions.at(met.execution.id), outcomes, effects);
  } else {
    announce(met.execution, effects);
  }
}

void World::start_wait(Execution& run, const Event& command, std::vector<Event>& outcomes) {
  if (command.kind == Event::Kind::wait_signal) {
    std::vector<Event>& waiting = signals[run.id];
    for (auto signal = waiting.begin(); signal != waiting.end(); ++signal) {
      if (signal->name != command.name) continue;
      Event taken = *signal;
      waiting.erase(signal);
      taken.key = std::to_string(taken.no);  // the event that told of it
      taken.step = command.step;
      outcomes.push_back(taken);
      return;
    }
  }
  Wait& wait = waits[{run.id, command.step}];
  wait = {};
  wait.until = command.until;
  if (command.kind == Event::Kind::wait_signal) wait.signal = command.name;
  keep_earliest(run.run.wake_at, wait.until);
}

// Ends the waits whose time has come. True if there were any.
bool World::fire_due(Execution& run) {
  bool any = false;
  run.run.wake_at.reset();
  const auto all_waits = waits;
  for (const auto& [place, wait] : all_waits) {
    if (place.first != run.id || !wait.until) continue;
    if (*wait.until > now) {
      keep_earliest(run.run.wake_at, wait.until);
      continue;
    }
    Event fired;
    fired.kind = Event::Kind::fired;
    fired.step = place.second;
    append(run, fired);
    waits.erase(place);
    any = true;
  }
  return any;
}

void World::wake_due(Execution& run, Effects& effects) {
  const bool is_stuck = run.run.stuck > 0;
  if (fire_due(run) || is_stuck) wake(run, effects);
}

}  // namespace hapax::oracle
