#include "core/transition.h"
#include "store/rules/close.h"
#include "store/rules/step.h"
#include "store/rules/submit.h"
#include "store/rules/workflow.h"

namespace hapax::rules {

// The run that a child has come to by now.
std::optional<Execution> latest(Rows& rows, const ExecutionId& id) {
  auto execution = rows.load(id);
  while (execution && execution->run.continued_as) execution = rows.load(*execution->run.continued_as);
  return execution;
}

namespace {

// A task or child that the history tells nothing of yet: the run waits for it again.
void await_again(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects) {
  auto step = latest(rows, *command.execution);
  if (!step) {
    outcomes.push_back(expired(command.step));
    return;
  }
  if (step->status == Status::completed) {
    outcomes.push_back(outcome_of(command.step, *step));
    return;
  }
  const bool own = step->parent == run.id && step->step == command.step;
  if (!own) {
    wait_on(rows, run, command.step, step->id);
    step->awaited = true;
  }
  if (step->id == run.id) return;
  if (is_closed(step->status)) {
    revive(rows, run, command.step, *std::move(step), outcomes, effects);
  } else if (own && step->cancel_requested_at) {  // with the run, which continues now
    step->cancel_requested_at.reset();
    step->cancel_by.reset();
    rows.save(*step);
  }
}

// Makes it the owner of its identity again, unless another is by now.
bool taken_by_another(Rows& rows, const Execution& execution, ControlOutcome& outcome) {
  if (!execution.identity) return false;
  const LedgerEntry* entry = rows.lock_entry(execution);
  if (entry && entry->owner != execution.id && is_held(rows, *entry)) {
    outcome.kind = ControlOutcome::Kind::identity_taken;
    outcome.other = entry->owner;
    return true;
  }
  give_identity(rows, execution);
  return false;
}

// Ends at once what still runs of steps that were taken out: its outcome must not meet another step of that number.
void end_removed(Rows& rows, const Execution& run, Effects& effects) {
  for (const ExecutionId& id : rows.steps_of(run.id)) {
    auto step = rows.load(id);
    if (!step || is_closed(step->status) || step->step <= run.run.steps) continue;
    request_cancel(*step, Duration(0), rows.now());
    if (!is_closed(step->status)) {
      step->cancel_by = rows.now();
      expire(*step, rows.now());
    }
    rows.save(*step);
    effects.closed.push_back({step->id, step->name_space, step->queue, step->kind, step->type});
    after_close(rows, *step, effects);
  }
}

// Starts waiting again for every step without an outcome. Returns the outcomes that have arrived since.
std::vector<Event> wait_again(Rows& rows, Execution& run, const std::vector<Event>& events, Effects& effects) {
  std::vector<bool> settled(static_cast<std::size_t>(run.run.steps) + 1);
  for (const Event& event : events) {
    if (is_outcome(event) && event.step <= run.run.steps) settled.at(static_cast<std::size_t>(event.step)) = true;
  }
  std::vector<Event> outcomes;
  for (const Event& command : events) {
    if (!is_command(command.kind) || settled.at(static_cast<std::size_t>(command.step))) continue;
    if (command.kind == Event::Kind::task || command.kind == Event::Kind::child) {
      if (command.execution) await_again(rows, run, command, outcomes, effects);
    } else if (command.kind == Event::Kind::sleep || command.kind == Event::Kind::wait_signal) {
      start_wait(rows, run, command, outcomes);
    } else if (command.kind == Event::Kind::send_signal) {  // it had failed
      send_signal(rows, run, command, outcomes, effects);
    }
  }
  return outcomes;
}

}  // namespace

ControlOutcome cancel(Rows& rows, Execution target) {
  ControlOutcome outcome;
  outcome.execution = target.id;
  outcome.changed = cancel_open(rows, target, outcome.effects);
  outcome.status = target.status;
  return outcome;
}

ControlOutcome ask_to_cancel(Rows& rows, Execution run, const ControlRequest& request) {
  ControlOutcome outcome;
  outcome.execution = run.id;
  outcome.status = run.status;
  if (is_closed(run.status) || run.cancel_requested_at) return outcome;
  run.cancel_requested_at = rows.now();
  if (request.grace) run.cancel_by = rows.now() + *request.grace;
  Event event;
  event.kind = Event::Kind::cancel_requested;
  event.value = request.payload;
  number(run, event, rows.now());
  rows.append(run.id, {event});
  wake(run, outcome.effects, rows.now());
  keep_earliest(outcome.effects.next_due, run.due_at());
  rows.save(run);
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

ControlOutcome retry(Rows& rows, Execution target) {
  if (target.kind == Kind::workflow) return resume(rows, std::move(target));
  ControlOutcome outcome;
  outcome.execution = target.id;
  outcome.status = target.status;
  if (!retry_closed(target, rows.now())) {
    outcome.kind = ControlOutcome::Kind::not_retryable;
    return outcome;
  }
  if (taken_by_another(rows, target, outcome)) return outcome;
  rows.save(target);
  announce(target, outcome.effects);
  outcome.changed = true;
  outcome.status = target.status;
  return outcome;
}

namespace {

// Its turn is handed out again, although it lost its workers.
ControlOutcome take_lost_again(Rows& rows, Execution run) {
  ControlOutcome outcome;
  outcome.execution = run.id;
  run.run.stuck = 0;
  run.error.reset();
  Event resumed;
  resumed.kind = Event::Kind::resumed;
  number(run, resumed, rows.now());
  rows.append(run.id, {resumed});
  wake(run, outcome.effects, rows.now());
  rows.save(run);
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

}  // namespace

ControlOutcome resume(Rows& rows, Execution run) {
  ControlOutcome outcome;
  outcome.execution = run.id;
  outcome.status = run.status;
  if (waits_for_resume(run)) return take_lost_again(rows, std::move(run));
  if (!is_closed(run.status) || run.status == Status::completed) return outcome;
  if (taken_by_another(rows, run, outcome)) return outcome;

  const Rewound rewound = rewind(rows.events(run.id));
  if (rewound.changed) rows.replace_events(run.id, rewound.kept);
  for (const Event& signal : rewound.signals) rows.put_signal(run.id, signal);
  run.run.steps = 0;
  for (const Event& event : rewound.kept) {
    if (is_command(event.kind)) run.run.steps = event.step;
  }
  end_removed(rows, run, outcome.effects);
  run.run.seen = 0;  // a worker that still has it in memory starts over
  run.run.stuck = 0;
  run.run.wake_at.reset();
  reopen(run, rows.now());
  rows.save(run);

  std::vector<Event> outcomes = wait_again(rows, run, rewound.kept, outcome.effects);
  Event resumed;
  resumed.kind = Event::Kind::resumed;
  outcomes.insert(outcomes.begin(), resumed);
  for (Event& event : outcomes) number(run, event, rows.now());
  rows.append(run.id, outcomes);
  rows.save(run);
  announce(run, outcome.effects);
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

ControlOutcome signal(Rows& rows, Execution run, const ControlRequest& request) {
  ControlOutcome outcome;
  outcome.execution = run.id;
  outcome.status = run.status;
  if (is_closed(run.status)) {
    outcome.kind = ControlOutcome::Kind::not_open;
    return outcome;
  }
  Event event;
  event.kind = Event::Kind::signal;
  event.name = request.signal;
  event.value = request.payload;
  for (const Wait& wait : rows.waits_of(run.id)) {
    if (wait.signal != request.signal) continue;
    event.step = wait.step;
    rows.erase_wait(run.id, wait.step);
    break;
  }
  number(run, event, rows.now());
  rows.append(run.id, {event});
  if (event.step > 0) {
    wake(run, outcome.effects, rows.now());
  } else {
    rows.put_signal(run.id, event);
  }
  rows.save(run);
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

namespace {

std::optional<Execution> target_of(Rows& rows, const ControlRequest& request) {
  std::optional<ExecutionId> id = request.target;
  if (request.workflow_id) id = rows.latest_run(request.name_space, *request.workflow_id);
  auto target = id ? rows.load(*id) : std::nullopt;
  if (target && request.workflow_id) target = latest(rows, *id);  // it may have continued while we waited for it
  if (!target || target->name_space != request.name_space) return std::nullopt;
  const bool takes_tasks =
      request.action == ControlRequest::Action::cancel || request.action == ControlRequest::Action::retry;
  if (target->kind == Kind::task && !takes_tasks) return std::nullopt;
  return target;
}

ControlOutcome run(Rows& rows, const ControlRequest& request) {
  auto target = target_of(rows, request);
  if (!target) {
    ControlOutcome outcome;
    outcome.kind = ControlOutcome::Kind::not_found;
    return outcome;
  }
  switch (request.action) {
    case ControlRequest::Action::cancel:
      if (request.asks && target->kind == Kind::workflow) return ask_to_cancel(rows, *std::move(target), request);
      return cancel(rows, *std::move(target));
    case ControlRequest::Action::retry: return retry(rows, *std::move(target));
    case ControlRequest::Action::resume: return resume(rows, *std::move(target));
    case ControlRequest::Action::fork: return fork(rows, *target, request);
    case ControlRequest::Action::signal: return signal(rows, *std::move(target), request);
  }
  return {};
}

// The answer to a request whose key was used before.
ControlOutcome answer_again(const PastRequest& past, const ControlRequest& request) {
  ControlOutcome outcome;
  if (past.action != request.action || past.target != request.target || past.workflow_id != request.workflow_id ||
      past.parameters != request.parameters) {
    outcome.kind = ControlOutcome::Kind::key_conflict;
    return outcome;
  }
  outcome.status = past.outcome.status;
  outcome.execution = past.outcome.execution;
  outcome.steps = past.outcome.steps;
  if (past.outcome.kind != ControlOutcome::Kind::done) {
    outcome.kind = ControlOutcome::Kind::failed_before;
    outcome.before = past.outcome.kind;
    outcome.other = past.outcome.other;
    return outcome;
  }
  outcome.replayed = true;
  outcome.changed = past.outcome.changed;
  return outcome;
}

}  // namespace

ControlOutcome control(Rows& rows, const ControlRequest& request) {
  if (const auto past = rows.find_request(request.name_space, request.request_key)) return answer_again(*past, request);
  ControlOutcome outcome = run(rows, request);
  rows.put_request(request.name_space, request.request_key,
                   {request.action, request.target, request.workflow_id, request.parameters, outcome},
                   rows.now() + request.request_ttl);
  return outcome;
}

}  // namespace hapax::rules
