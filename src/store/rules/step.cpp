#include "store/rules/step.h"

#include <fmt/format.h>

#include "core/reuse.h"
#include "core/transition.h"
#include "core/workflow.h"
#include "store/rules/close.h"
#include "store/rules/new_execution.h"

namespace hapax::rules {

void number(Execution& run, Event& event, Time now) {
  event.no = ++run.run.events;
  event.at = now;
}

void announce(const Execution& execution, Effects& effects) {
  effects.ready.push_back({execution.id, execution.name_space, execution.queue, execution.kind, execution.type});
  keep_earliest(effects.next_due, execution.due_at());
}

void wake(Execution& run, Effects& effects, Time now) {
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

bool cancel_open(Rows& rows, Execution& execution, Effects& effects) {
  const Duration grace = rows.policies().of(execution.name_space, execution.queue).cancel_grace;
  if (!request_cancel(execution, grace, rows.now())) return false;
  rows.save(execution);
  keep_earliest(effects.next_due, execution.due_at());
  if (!is_closed(execution.status)) return true;
  effects.closed.push_back({execution.id, execution.name_space, execution.queue, execution.kind, execution.type});
  after_close(rows, execution, effects);
  return true;
}

void give_identity(Rows& rows, const Execution& execution) {
  const LedgerEntry* before = rows.lock_entry(execution);
  LedgerEntry entry = new_entry(execution, std::nullopt);
  if (before) entry.expires_at = before->expires_at;
  rows.put_entry(execution, entry);
}

void wait_on(Rows& rows, Execution& run, std::int32_t step, const ExecutionId& execution) {
  Wait wait;
  wait.run = run.id;
  wait.step = step;
  wait.on = execution;
  rows.put_wait(wait);
  if (execution == run.id) {
    run.awaited = true;
    return;
  }
  auto awaited = rows.load(execution);
  awaited->awaited = true;
  rows.save(*awaited);
}

namespace {

// The step shares another execution.
void stand_in(Rows& rows, Execution& run, std::int32_t step, const ExecutionId& other, std::vector<Event>& outcomes) {
  const auto owner = rows.load(other);
  if (owner && is_closed(owner->status)) {
    outcomes.push_back(outcome_of(step, *owner));
  } else if (owner) {
    wait_on(rows, run, step, other);
  } else {
    outcomes.push_back(expired(step));
  }
}

}  // namespace

Event expired(std::int32_t step) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.status = Status::failed;
  event.error = AttemptError{"ResultExpired", "the execution that stood for this step is no longer kept"};
  return event;
}

void revive(Rows& rows, Execution& run, std::int32_t step, Execution closed, std::vector<Event>& outcomes,
            Effects& effects) {
  const ControlOutcome revived = retry(rows, std::move(closed));
  effects.add(revived.effects);
  if (revived.kind == ControlOutcome::Kind::identity_taken) stand_in(rows, run, step, *revived.other, outcomes);
}

namespace {

Event refused(std::int32_t step, std::string type, std::string message) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.status = Status::failed;
  event.error = AttemptError{std::move(type), std::move(message)};
  return event;
}

// The step's key belongs to an earlier execution.
void meet(Rows& rows, Execution& run, Event& command, SubmitOutcome outcome, std::vector<Event>& outcomes) {
  Execution& owner = outcome.execution;
  command.status = owner.status;  // is_deduplicated()
  if (outcome.purged) {
    outcomes.push_back(expired(command.step));
  } else if (is_closed(owner.status)) {
    outcomes.push_back(outcome_of(command.step, owner));
  } else {
    wait_on(rows, run, command.step, owner.id);
  }
}

// Submits what may cancel others: the effect on this run applies to what is stored.
SubmitOutcome submit_replacing(Rows& rows, Execution& run, const Submission& submission) {
  rows.save(run);
  SubmitOutcome outcome = rows.submit(submission);
  if (auto stored = rows.load(run.id)) {
    run = *std::move(stored);
  } else {
    run.status = Status::cancelled;  // and deleted with that
  }
  return outcome;
}

}  // namespace

namespace {

// Makes the submission one of a step of that run.
void be_step_of(const Execution& run, std::int32_t step, Execution& execution) {
  execution.id = step_id(run.id, execution.type, step);
  execution.name_space = run.name_space;
  execution.parent = run.id;
  execution.step = step;
  execution.parent_workflow_id = run.idempotency_key.value_or("");
  if (!execution.headers) execution.headers = run.headers;
}

}  // namespace

Execution store_begun(Rows& rows, const Execution& run, const Turn::Start& start) {
  Submission submission = start.submission;
  be_step_of(run, start.step, submission.execution);
  Execution step = rows.submit(submission).execution;
  const Turn::Begun& begun = *start.begun;
  start_attempt(step, begun.worker, begun.secret, begun.lease, rows.now());
  if (begun.completed) complete(step, begun.completed->result, rows.now());
  rows.save(step);
  return step;
}

void start_step(Rows& rows, Execution& run, Event& command, Submission submission, std::vector<Event>& outcomes,
                Effects& effects) {
  Execution& step = submission.execution;
  be_step_of(run, command.step, step);
  command.status.reset();
  const bool replaces = submission.reuse == Reuse::replace && step.identity;
  SubmitOutcome outcome = replaces ? submit_replacing(rows, run, submission) : rows.submit(submission);
  command.execution = outcome.execution.id;
  if (outcome.superseded)
    effects.closed.push_back({*outcome.superseded, run.name_space, step.queue, step.kind, step.type});
  effects.add(outcome.effects);

  if (outcome.kind == SubmitOutcome::Kind::conflict) {
    const bool of_type = difference(step, outcome.execution) == Difference::type;
    outcomes.push_back(refused(command.step, "IdempotencyConflict",
                               fmt::format("the step's key was used for another {}, by {}", of_type ? "type" : "input",
                                           outcome.execution.id.to_string())));
  } else if (outcome.kind == SubmitOutcome::Kind::duplicate) {
    meet(rows, run, command, std::move(outcome), outcomes);
  } else if (!is_closed(outcome.execution.status)) {
    announce(outcome.execution, effects);
  } else if (outcome.execution.status == Status::completed) {  // by an earlier life of this run
    outcomes.push_back(outcome_of(command.step, outcome.execution));
  } else {
    revive(rows, run, command.step, std::move(outcome.execution), outcomes, effects);
  }
}

namespace {

// Does something that may change this run as it is stored.
template <class Work>
void with_stored(Rows& rows, Execution& run, Work work) {
  rows.save(run);
  work();
  if (auto stored = rows.load(run.id)) {
    run = *std::move(stored);
  } else {
    run.status = Status::cancelled;  // and deleted with that
  }
}

Event ended(std::int32_t step, Status status) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.status = status;
  return event;
}

}  // namespace

void cancel_step(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects) {
  const std::int32_t step = cancelled_step(command);
  for (const Wait& wait : rows.waits_of(run.id)) {
    if (wait.step != step) continue;
    rows.erase_wait(run.id, step);
    outcomes.push_back(ended(step, Status::cancelled));
    return;
  }
  auto own = command.name.empty() ? std::nullopt : rows.load(step_id(run.id, command.name, step));
  if (!own || is_closed(own->status) || own->parent != run.id) return;
  with_stored(rows, run, [&] { cancel_open(rows, *own, effects); });
}

void send_signal(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects) {
  ControlRequest request;
  request.signal = command.name;
  request.payload = command.value;
  const std::string workflow_id = command.key.value_or("");
  const auto id = rows.latest_run(run.name_space, workflow_id);
  bool is_delivered = false;
  with_stored(rows, run, [&] {
    auto target = id ? latest(rows, *id) : std::nullopt;
    if (!target || is_closed(target->status)) return;
    effects.add(signal(rows, *std::move(target), request).effects);
    is_delivered = true;
  });
  outcomes.push_back(
      is_delivered ? ended(command.step, Status::completed)
      : id         ? refused(command.step, "WorkflowClosed",
                             fmt::format("the workflow {} is closed: it takes no signals", workflow_id))
                   : refused(command.step, "WorkflowNotFound", fmt::format("there is no workflow {}", workflow_id)));
}

void start_wait(Rows& rows, Execution& run, const Event& command, std::vector<Event>& outcomes) {
  Wait wait;
  wait.run = run.id;
  wait.step = command.step;
  wait.until = command.until;
  if (command.kind == Event::Kind::wait_signal) {
    if (auto signal = rows.take_signal(run.id, command.name)) {
      signal->key = std::to_string(signal->no);  // the event that recorded it
      signal->step = command.step;
      outcomes.push_back(*std::move(signal));
      return;
    }
    wait.signal = command.name;
  }
  rows.put_wait(wait);
  keep_earliest(run.run.wake_at, wait.until);
}

}  // namespace hapax::rules
