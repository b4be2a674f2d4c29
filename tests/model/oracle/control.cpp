// Spec 5: cancel, resume, fork, retry, signal, each under a request key.
#include <algorithm>
#include <set>

#include "model/oracle/world.h"

namespace hapax::oracle {

namespace {

bool is_failure(const Event& event) {
  return event.kind == Event::Kind::closed && event.step > 0 && event.status != Status::completed;
}

bool is_outcome_of_step(const Event& event) {
  const bool is_outcome =
      event.kind == Event::Kind::closed || event.kind == Event::Kind::fired || event.kind == Event::Kind::signal;
  return is_outcome && event.step > 0;
}

// The run that a workflow has come to by continuing as new.
Execution* latest(World& world, Execution* execution) {
  while (execution && execution->run.continued_as) execution = world.find(*execution->run.continued_as);
  return execution;
}

// An execution that goes on needs its identity back.
bool takes_identity(World& world, const Execution& execution, ControlOutcome& outcome) {
  if (!execution.identity) return true;
  const auto entry = world.ledger.find(execution.identity->hash);
  if (entry != world.ledger.end() && world.is_live(entry->second) && entry->second.owner != execution.id) {
    outcome.kind = ControlOutcome::Kind::identity_taken;
    outcome.other = entry->second.owner;
    return false;
  }
  world.give_identity(execution);
  return true;
}

void reopen(World& world, Execution& execution) {
  execution.status = Status::pending;
  execution.run_at = world.now;
  execution.finished_at.reset();
  execution.cancel_requested_at.reset();
  if (execution.deadline_at && *execution.deadline_at <= world.now) execution.deadline_at.reset();
}

ControlOutcome begin(const Execution& target) {
  ControlOutcome outcome;
  outcome.execution = target.id;
  outcome.status = target.status;
  return outcome;
}

ControlOutcome refuse(ControlOutcome outcome, ControlOutcome::Kind kind) {
  outcome.kind = kind;
  return outcome;
}

}  // namespace

ControlOutcome World::cancel(Execution& target) {
  ControlOutcome outcome = begin(target);
  const Execution before = target;
  outcome.changed = cancel_open(target, outcome.effects);
  const bool closes_at_once = before.status != Status::running || before.kind == Kind::workflow;
  if (outcome.changed) outcome.status = closes_at_once ? Status::cancelled : Status::running;
  return outcome;
}

// The code is told, and may answer; after the grace it is closed in any case.
ControlOutcome World::ask_to_cancel(Execution& run, const ControlRequest& request) {
  ControlOutcome outcome = begin(run);
  if (is_closed(run.status) || run.cancel_requested_at) return outcome;
  run.cancel_requested_at = now;
  if (request.grace) run.cancel_by = now + *request.grace;
  Event event;
  event.kind = Event::Kind::cancel_requested;
  event.value = request.payload;
  append(run, event);
  wake(run, outcome.effects);
  keep_earliest(outcome.effects.next_due, due_at(run));
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

// A failed task gets new attempts.
ControlOutcome World::retry(Execution& target) {
  if (target.kind == Kind::workflow) return resume(target);
  ControlOutcome outcome = begin(target);
  if (!is_closed(target.status) || target.status == Status::completed) {
    return refuse(outcome, ControlOutcome::Kind::not_retryable);
  }
  if (!takes_identity(*this, target, outcome)) return outcome;
  reopen(*this, target);
  target.attempt_limit = target.attempt + target.max_attempts;
  announce(target, outcome.effects);
  outcome.changed = true;
  outcome.status = target.status;
  return outcome;
}

ControlOutcome World::signal(Execution& run, const ControlRequest& request) {
  ControlOutcome outcome = begin(run);
  if (is_closed(run.status)) return refuse(outcome, ControlOutcome::Kind::not_open);
  Event event;
  event.kind = Event::Kind::signal;
  event.name = request.signal;
  event.value = request.payload;
  for (const auto& [place, wait] : waits) {
    if (place.first != run.id || wait.signal != request.signal) continue;
    event.step = place.second;
    waits.erase(place);
    break;
  }
  append(run, event);
  if (event.step > 0) {
    wake(run, outcome.effects);
  } else {
    signals[run.id].push_back(histories[run.id].back());
  }
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

// ---- resume

namespace {

// What a failed workflow forgets to go on from its last completed step: the failures that its code met after it last
// asked for something; or, if it failed because a step did, the last failure and all that the code asked for since.
struct Rewinding {
  bool any = false;
  std::int64_t after = 0;      // failures of later events are forgotten
  std::int32_t last_step = 0;  // later steps are forgotten
};

Rewinding find_rewinding(const std::vector<Event>& history) {
  const auto last_command = [&](std::int64_t before) {
    Rewinding found;
    for (const Event& event : history) {
      if (is_command(event.kind) && event.no < before) found = {true, event.no, event.step};
    }
    found.any = true;
    return found;
  };
  std::int64_t last_failure = 0;
  for (const Event& event : history) {
    if (is_failure(event)) last_failure = event.no;
  }
  if (last_failure == 0) return {};
  const Rewinding at_last = last_command(INT64_MAX);
  if (last_failure > at_last.after) return at_last;
  const Event& end = history.back();
  return end.error && end.error->type == "StepFailed" ? last_command(last_failure) : Rewinding();
}

void rewind(World& world, Execution& run) {
  std::vector<Event>& history = world.histories[run.id];
  const Rewinding cut = find_rewinding(history);
  if (!cut.any) return;
  std::vector<Event> kept;
  for (const Event& event : history) {
    if (is_failure(event) && event.no > cut.after) continue;
    if (event.step <= cut.last_step || event.kind == Event::Kind::forked) {
      kept.push_back(event);
    } else if (event.kind == Event::Kind::signal) {  // nobody has taken it now
      Event* told = nullptr;
      for (Event& each : history) {
        if (event.key && std::to_string(each.no) == *event.key) told = &each;
      }
      Event free = told ? *told : event;
      free.step = 0;
      if (!told) kept.push_back(free);
      world.signals[run.id].push_back(free);
    }
  }
  history = kept;
}

// A step that was forgotten ends at once: its outcome must not meet another step of that number.
void end_forgotten(World& world, const Execution& run, Effects& effects) {
  for (const ExecutionId& id : world.steps_of(run.id)) {
    Execution& step = world.executions.at(id);
    if (is_closed(step.status) || step.step <= run.run.steps) continue;
    if (step.status == Status::running && step.kind == Kind::task) {
      if (!step.cancel_requested_at) step.cancel_requested_at = world.now;
      world.end_attempt(step, {"CancelGraceExceeded", "the worker did not stop within the grace of the cancel"}, false);
      world.close(step, Status::cancelled);
    } else {
      world.request_cancel(step);
    }
    effects.closed.push_back(changed(step));
    world.settle(id, effects);
  }
}

void wait_again_for(World& world, Execution& run, const Event& command, std::vector<Event>& outcomes,
                    Effects& effects) {
  Execution* step = latest(world, world.find(*command.execution));
  if (!step) {
    outcomes.push_back(expired_outcome(command.step));
    return;
  }
  if (step->status == Status::completed) {
    outcomes.push_back(outcome_of(command.step, *step));
    return;
  }
  const bool is_own = step->parent == run.id && step->step == command.step;
  if (!is_own) world.wait_on(run.id, command.step, step->id);
  if (step->id == run.id) return;
  if (is_closed(step->status)) {
    world.revive(run.id, command.step, *step, outcomes, effects);
  } else if (is_own) {  // it was to be cancelled with the run
    step->cancel_requested_at.reset();
    step->cancel_by.reset();
  }
}

std::set<std::int32_t> settled_steps(const std::vector<Event>& history) {
  std::set<std::int32_t> settled;
  for (const Event& event : history) {
    if (is_outcome_of_step(event)) settled.insert(event.step);
  }
  return settled;
}

bool is_wait(const Event& event) { return event.kind == Event::Kind::sleep || event.kind == Event::Kind::wait_signal; }

}  // namespace

ControlOutcome World::resume(Execution& run) {
  ControlOutcome outcome = begin(run);
  if (waits_for_resume(run)) {  // its turn is handed out again
    run.run.stuck = 0;
    run.error.reset();
    Event resumed;
    resumed.kind = Event::Kind::resumed;
    append(run, resumed);
    wake(run, outcome.effects);
    outcome.changed = true;
    outcome.status = run.status;
    return outcome;
  }
  if (!is_closed(run.status) || run.status == Status::completed) return outcome;
  if (!takes_identity(*this, run, outcome)) return outcome;

  rewind(*this, run);
  const std::vector<Event> history = histories[run.id];
  run.run.steps = 0;
  for (const Event& event : history) {
    if (is_command(event.kind)) run.run.steps = event.step;
  }
  end_forgotten(*this, run, outcome.effects);
  reopen(*this, run);
  run.error.reset();
  run.lease_secret.reset();
  run.run.seen = 0;
  run.run.stuck = 0;
  run.run.wake_at.reset();

  std::vector<Event> outcomes;
  const std::set<std::int32_t> settled = settled_steps(history);
  for (const Event& command : history) {
    if (!is_command(command.kind) || settled.contains(command.step)) continue;
    if (is_wait(command)) {
      start_wait(run, command, outcomes);
    } else if (command.execution) {
      wait_again_for(*this, run, command, outcomes, outcome.effects);
    } else if (command.kind == Event::Kind::send_signal) {
      send_signal(run, command, outcomes, outcome.effects);
    }
  }
  Event resumed;
  resumed.kind = Event::Kind::resumed;
  append(run, resumed);
  for (const Event& event : outcomes) append(run, event);
  announce(run, outcome.effects);
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

// ---- fork

namespace {

// The run as it was before it ran.
Execution unstarted(const Execution& old) {
  Execution fresh;
  fresh.kind = old.kind;
  fresh.name_space = old.name_space;
  fresh.type = old.type;
  fresh.queue = old.queue;
  fresh.input = old.input;
  fresh.input_hash = old.input_hash;
  fresh.idempotency_key = old.idempotency_key;
  fresh.identity = old.identity;
  fresh.priority = old.priority;
  fresh.concurrency_key = old.concurrency_key;
  fresh.max_attempts = old.max_attempts;
  fresh.retry = old.retry;
  fresh.timeout = old.timeout;
  return fresh;
}

// The steps before that one and what came of them, and the signals that had come by then.
std::vector<Event> history_before(const std::vector<Event>& history, std::int32_t from_step) {
  std::int64_t asked = INT64_MAX;
  std::set<std::string> taken;  // the numbers of signals that a step before took
  for (const Event& event : history) {
    if (is_command(event.kind) && event.step == from_step) asked = event.no;
    if (is_outcome_of_step(event) && event.step < from_step && event.key) taken.insert(*event.key);
  }
  std::vector<Event> kept;
  for (Event event : history) {
    const bool is_early_step = (is_command(event.kind) || is_outcome_of_step(event)) && event.step < from_step;
    const bool is_free_signal = event.kind == Event::Kind::signal && event.step == 0 && event.no < asked &&
                                !taken.contains(std::to_string(event.no));
    if (!is_early_step && !is_free_signal) continue;
    if (event.kind == Event::Kind::signal) event.key.reset();
    kept.push_back(event);
  }
  return kept;
}

}  // namespace

ControlOutcome World::fork(const ExecutionId& old_id, const ControlRequest& request) {
  const Execution old = executions.at(old_id);
  ControlOutcome outcome;
  outcome.status = old.status;
  outcome.steps = old.run.steps;
  if (request.from_step < 1 || request.from_step > old.run.steps + 1) {
    return refuse(outcome, ControlOutcome::Kind::no_such_step);
  }
  Submission submission;
  submission.execution = unstarted(old);
  submission.execution.id = request.fork_id;
  submission.execution.idempotency_key = request.fork_workflow_id;
  submission.execution.identity = request.fork_identity;
  submission.reuse = Reuse::reject;
  const SubmitOutcome submitted = submit(submission);
  if (submitted.kind != SubmitOutcome::Kind::created) {
    outcome.other = submitted.execution.id;
    return refuse(outcome, ControlOutcome::Kind::identity_taken);
  }

  Execution& run = executions.at(request.fork_id);
  run.run.steps = request.from_step - 1;
  std::vector<Event> copied = history_before(histories[old_id], request.from_step);
  Event forked;
  forked.kind = Event::Kind::forked;
  forked.step = request.from_step;
  forked.execution = old_id;
  forked.at = now;
  copied.insert(copied.begin(), forked);
  for (Event& event : copied) event.no = ++run.run.events;

  // What had not come to anything begins anew.
  std::vector<Event> outcomes;
  const std::set<std::int32_t> settled = settled_steps(copied);
  for (Event& event : copied) {
    if (event.kind == Event::Kind::signal && event.step == 0) signals[run.id].push_back(event);
    if (!is_command(event.kind) || settled.contains(event.step)) continue;
    if (is_wait(event)) {
      start_wait(run, event, outcomes);
    } else if (event.execution) {
      const Execution* step = find(*event.execution);
      if (!step) {
        outcomes.push_back(expired_outcome(event.step));
        continue;
      }
      Submission again;
      again.execution = unstarted(*step);
      const bool is_unnamed_child =
          step->kind == Kind::workflow && step->idempotency_key == child_workflow_id(old_id, event.step);
      if (is_unnamed_child) {
        const std::string name = child_workflow_id(run.id, event.step);
        again.execution.idempotency_key = name;
        again.execution.identity = workflow_identity(run.name_space, name);
      }
      start_step(run.id, event, again, outcomes, outcome.effects);
    }
  }
  histories[run.id] = copied;
  for (const Event& event : outcomes) append(run, event);
  announce(run, outcome.effects);
  outcome.execution = run.id;
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

// ---- request keys

namespace {

bool is_same(const ControlRequest& a, const ControlRequest& b) {
  return a.action == b.action && a.target == b.target && a.workflow_id == b.workflow_id && a.parameters == b.parameters;
}

ControlOutcome answer_again(const KeyedRequest& before, const ControlRequest& request) {
  ControlOutcome outcome;
  if (!is_same(before.request, request)) return refuse(outcome, ControlOutcome::Kind::key_conflict);
  outcome.status = before.outcome.status;
  outcome.execution = before.outcome.execution;
  outcome.steps = before.outcome.steps;
  if (before.outcome.kind != ControlOutcome::Kind::done) {
    outcome.before = before.outcome.kind;
    outcome.other = before.outcome.other;
    return refuse(outcome, ControlOutcome::Kind::failed_before);
  }
  outcome.changed = before.outcome.changed;
  outcome.replayed = true;
  return outcome;
}

}  // namespace

Execution* World::latest_run(const std::string& name_space, const std::string& workflow_id) {
  Execution* found = nullptr;
  for (auto& [id, each] : executions) {
    if (each.kind != Kind::workflow || each.name_space != name_space || each.idempotency_key != workflow_id) continue;
    if (!found || each.created_at >= found->created_at) found = &each;
  }
  return latest(*this, found);
}

namespace {

Execution* find_target(World& world, const ControlRequest& request) {
  Execution* target = nullptr;
  if (!request.workflow_id) {
    target = world.find(request.target);
  } else {
    target = world.latest_run(request.name_space, *request.workflow_id);
  }
  return target && target->name_space == request.name_space ? target : nullptr;
}

ControlOutcome run_operation(World& world, const ControlRequest& request) {
  Execution* target = find_target(world, request);
  const bool is_task = target && target->kind == Kind::task;
  switch (request.action) {
    case ControlRequest::Action::cancel:
      if (target && !is_task && request.asks) return world.ask_to_cancel(*target, request);
      if (target) return world.cancel(*target);
      break;
    case ControlRequest::Action::retry:
      if (target) return world.retry(*target);
      break;
    case ControlRequest::Action::resume:
      if (target && !is_task) return world.resume(*target);
      break;
    case ControlRequest::Action::fork:
      if (target && !is_task) return world.fork(target->id, request);
      break;
    case ControlRequest::Action::signal:
      if (target && !is_task) return world.signal(*target, request);
      break;
  }
  return refuse({}, ControlOutcome::Kind::not_found);
}

}  // namespace

ControlOutcome World::control(const ControlRequest& request) {
  const QueueKey key(request.name_space, request.request_key);
  const auto before = requests.find(key);
  if (before != requests.end() && before->second.expires_at > now) return answer_again(before->second, request);
  const ControlOutcome outcome = run_operation(*this, request);
  requests[key] = {request, outcome, now + request.request_ttl};
  return outcome;
}

}  // namespace hapax::oracle
