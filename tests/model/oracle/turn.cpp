// Spec 4: a worker hands back a turn.
#include <algorithm>

#include "model/oracle/world.h"

namespace hapax::oracle {

namespace {

constexpr std::size_t kRemembered = 16;  // turns of a run

// A turn that is sent again gets the same answer. A completed run keeps its lease, which is enough.
void remember(Execution& run) {
  if (run.status == Status::completed) return;
  CommittedTurn turn;
  turn.attempt = run.attempt;
  turn.status = run.status;
  std::copy_n(run.lease_secret.value().bytes.begin(), turn.secret.size(), turn.secret.begin());
  run.run.committed.push_back(turn);
  if (run.run.committed.size() > kRemembered) run.run.committed.erase(run.run.committed.begin());
}

std::optional<Status> first_answer_to(const Execution& run, const LeaseToken& token) {
  for (const CommittedTurn& turn : run.run.committed) {
    const bool same_secret = std::equal(turn.secret.begin(), turn.secret.end(), token.secret.bytes.begin());
    if (turn.attempt == token.attempt && same_secret) return turn.status;
  }
  return std::nullopt;
}

void end_lease(Execution& run) {
  run.lease_expires_at.reset();
  run.attempt_ends_by.reset();
}

ExecutionId id_of(const ExecutionId& run, const Turn::Start& start) {
  return step_id(run, start.submission.execution.type, start.step);
}

// A step that its worker began within the turn: as if it had been submitted and claimed just now.
Execution& store_begun(World& world, const Execution& run, const Turn::Start& start) {
  Submission submission = start.submission;
  Execution& step = submission.execution;
  step.id = id_of(run.id, start);
  step.name_space = run.name_space;
  step.parent = run.id;
  step.step = start.step;
  step.parent_workflow_id = run.idempotency_key.value_or("");
  Execution& stored = world.executions.at(world.submit(submission).execution.id);
  world.start(stored, start.begun->worker, start.begun->secret, start.begun->lease);
  if (start.begun->completed) {
    stored.result = start.begun->completed->result;
    world.close(stored, Status::completed);
  }
  return stored;
}

// What a worker did within a turn that came too late is done, and is kept.
void keep_completed(World& world, const Execution& run, const Turn& turn) {
  for (const Turn::Start& start : turn.starts) {
    if (!start.begun || !start.begun->completed || world.find(id_of(run.id, start))) continue;
    store_begun(world, run, start);
  }
}

std::optional<AttemptError> find_misnumbering(const Execution& run, const Turn& turn) {
  std::int32_t next = run.run.steps + 1;
  for (const Event& event : turn.events) {
    if (!is_command(event.kind)) continue;
    if (event.step != next) {
      return AttemptError{"InvalidTurn", "the turn sent step " + std::to_string(event.step) + " where step " +
                                             std::to_string(next) + " comes next"};
    }
    ++next;
  }
  return std::nullopt;
}

// An unfinished turn keeps its lease: the same one again has its steps in the history.
bool was_kept_before(const Execution& run, const Turn& turn) {
  if (!std::holds_alternative<Turn::Unfinished>(turn.end)) return false;
  std::int32_t last = 0;
  for (const Event& event : turn.events) {
    if (is_command(event.kind)) last = event.step;
  }
  return last > 0 && last <= run.run.steps;
}

void close_run(World& world, Execution& run, Status status, Effects& effects) {
  world.close(run, status);
  remember(run);
  effects.closed.push_back(changed(run));
  world.settle(run.id, effects);
}

// It stays suspended for a fixed worker, and is tried again later.
void get_stuck(World& world, Execution& run, const AttemptError& error, Effects& effects) {
  ++run.run.stuck;
  if (run.error != error) {
    run.error = error;
    Event stuck;
    stuck.kind = Event::Kind::stuck;
    stuck.error = error;
    world.append(run, stuck);
  }
  run.status = Status::suspended;
  keep_earliest(run.run.wake_at, world.now + world.backoff(run, run.run.stuck));
  keep_earliest(effects.next_due, world.due_at(run));
  remember(run);
}

void suspend(World& world, Execution& run, Effects& effects, bool news) {
  run.status = Status::suspended;
  if (run.run.wake_at && *run.run.wake_at <= world.now && world.fire_due(run)) news = true;
  if (news) world.wake(run, effects);
  keep_earliest(effects.next_due, world.due_at(run));
  remember(run);
}

void continue_as_new(World& world, Execution& run, const Turn::Continued& continued, Effects& effects) {
  Execution next = run;
  next.id = continued.id;
  next.input = continued.input;
  next.input_hash = continued.input_hash;
  next.status = Status::pending;
  next.created_at = world.now;
  next.run_at = world.now;
  next.attempt = 0;
  next.started_at.reset();
  next.worker.clear();
  next.lease_secret.reset();
  next.superseded.reset();
  next.cancel_requested_at.reset();
  next.cancel_by.reset();
  next.run = RunState();

  run.run.continued_as = next.id;
  Event event;
  event.kind = Event::Kind::continued;
  event.execution = next.id;
  world.append(run, event);
  // Whoever waited for this run waits for the next, and signals that nobody took are the next one's.
  for (auto& [place, wait] : world.waits) {
    if (wait.on == run.id) wait.on = next.id;
  }
  Execution& stored = world.executions[next.id] = next;
  std::vector<Event>& free = world.signals[run.id];
  for (const Event& event : world.histories[run.id]) {
    if (event.kind != Event::Kind::signal || event.step != 0) continue;
    const auto signal = std::find_if(free.begin(), free.end(), [&](const Event& e) { return e.name == event.name; });
    if (signal == free.end()) continue;
    world.append(stored, *signal);
    world.signals[next.id].push_back(world.histories[next.id].back());
    free.erase(signal);
  }
  if (stored.identity) world.give_identity(stored);
  world.announce(stored, effects);
  close_run(world, run, Status::completed, effects);
}

Event ended_step(std::int32_t step, Status status) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.status = status;
  return event;
}

// Spec 4: a timer, a wait for a signal, a task or a child. An abandoned wait swallows no signal.
void cancel_step(World& world, const Execution& run, const Event& command, std::vector<Event>& outcomes,
                 Effects& effects) {
  const std::int32_t step = std::stoi(command.value.value_or("0"));
  if (world.waits.erase({run.id, step}) > 0) {
    outcomes.push_back(ended_step(step, Status::cancelled));
    return;
  }
  Execution* own = command.name.empty() ? nullptr : world.find(step_id(run.id, command.name, step));
  if (own && own->parent == run.id) world.cancel_open(*own, effects);
}

}  // namespace

void World::send_signal(const Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects) {
  ControlRequest request;
  request.name_space = run.name_space;
  request.workflow_id = command.key;
  request.signal = command.name;
  request.payload = command.value;
  Execution* target = latest_run(run.name_space, *command.key);
  if (!target) {
    outcomes.push_back(failed_outcome(command.step, "WorkflowNotFound", "there is no workflow " + *command.key));
  } else if (is_closed(target->status)) {
    outcomes.push_back(failed_outcome(command.step, "WorkflowClosed",
                                      "the workflow " + *command.key + " is closed: it takes no signals"));
  } else {
    effects.add(signal(*target, request).effects);
    outcomes.push_back(ended_step(command.step, Status::completed));
  }
}

namespace {

// Starts what the turn asks for. The run may be closed by that: one of its steps may replace it.
void ask(World& world, Execution*& run, const Turn& turn, Effects& effects, bool& news) {
  const ExecutionId id = run->id;
  const std::int64_t before = run->run.events;
  std::int64_t own = 0;  // events of this turn, appended so far
  std::vector<Event> asked, outcomes;
  for (const Event& event : turn.events) {
    if (!is_command(event.kind)) {
      outcomes.push_back(event);
      continue;
    }
    run->run.steps = event.step;
    asked.push_back(event);
    const auto start = std::find_if(turn.starts.begin(), turn.starts.end(),
                                    [&](const Turn::Start& each) { return each.step == event.step; });
    if (start != turn.starts.end() && start->begun) {
      const Execution& step = store_begun(world, *run, *start);
      asked.back().execution = step.id;
      keep_earliest(effects.next_due, world.due_at(step));
      if (!is_closed(step.status)) continue;
      asked.push_back(outcome_of(event.step, step));
      if (run->run.events == turn.seen) run->run.seen = turn.seen + std::ssize(asked);
    } else if (start != turn.starts.end()) {
      world.start_step(id, asked.back(), start->submission, outcomes, effects);
      run = world.find(id);
      if (!run || is_closed(run->status)) return;
    } else if (event.kind == Event::Kind::sleep || event.kind == Event::Kind::wait_signal) {
      world.start_wait(*run, event, outcomes);
    } else if (event.kind == Event::Kind::cancel_step || event.kind == Event::Kind::send_signal) {
      for (const Event& each : asked) world.append(*run, each);
      own += std::ssize(asked);
      asked.clear();
      if (event.kind == Event::Kind::cancel_step) {
        cancel_step(world, *run, event, outcomes, effects);
      } else {
        world.send_signal(*run, event, outcomes, effects);
      }
      run = world.find(id);
      if (!run || is_closed(run->status)) return;
    }
  }
  const bool was_told = run->run.events > before + own;  // a step that this turn replaced or cancelled
  for (const Event& event : asked) world.append(*run, event);
  for (const Event& event : outcomes) world.append(*run, event);
  news = news || was_told || !outcomes.empty();
}

// The status of the run after the turn.
Status commit(World& world, Execution* run, const Turn& turn, Effects& effects) {
  const bool is_unfinished = std::holds_alternative<Turn::Unfinished>(turn.end);
  const auto misnumbering = find_misnumbering(*run, turn);
  if (!is_unfinished || misnumbering) end_lease(*run);
  const auto* stuck = std::get_if<Turn::Stuck>(&turn.end);
  if (stuck || misnumbering) {
    get_stuck(world, *run, stuck ? stuck->error : *misnumbering, effects);
    return run->status;
  }
  bool news = run->run.events > turn.seen;
  run->run.seen = turn.seen;
  run->run.stuck = 0;
  run->error.reset();
  ask(world, run, turn, effects, news);
  if (!run) return Status::cancelled;  // and deleted
  if (is_closed(run->status)) return run->status;

  if (const auto* completed = std::get_if<Turn::Completed>(&turn.end)) {
    run->result = completed->result;
    close_run(world, *run, Status::completed, effects);
    return Status::completed;
  }
  if (const auto* failed = std::get_if<Turn::Failed>(&turn.end)) {
    run->error = failed->error;
    // Code that does not answer a requested cancel is cancelled by it.
    const bool is_cancelled = run->cancel_requested_at && failed->error.type == "CancelRequested";
    const Status status = is_cancelled ? Status::cancelled : Status::failed;
    close_run(world, *run, status, effects);
    return status;
  }
  if (const auto* continued = std::get_if<Turn::Continued>(&turn.end)) {
    continue_as_new(world, *run, *continued, effects);
    return Status::completed;
  }
  if (is_unfinished && !news && !turn.step) {
    run->run.seen = run->run.events;
    return run->status;
  }
  end_lease(*run);
  suspend(world, *run, effects, news || is_unfinished);
  return run->status;
}

// The turn that follows a step: claimed by whoever ended the step, if nothing else has happened since the last turn.
void claim_following(World& world, const Turn& turn, Effects& effects) {
  Execution* run = world.find(turn.token.execution);
  if (!run || run->run.events != turn.seen || !world.may_be_handed_out(*run)) return;
  if (!turn.name_space.empty() && turn.name_space != run->name_space) return;
  if (!world.was_reported(*run, turn.token)) return;
  world.start(*run, run->worker, turn.token.next().secret, std::chrono::seconds(1));
  std::erase_if(effects.ready, [&](const Changed& each) { return each.id == run->id; });
}

bool is_step_of(World& world, const ExecutionId& step_id, const ExecutionId& run) {
  const Execution* step = world.find(step_id);
  return step && step->kind == Kind::task && step->parent == run && world.find(run);
}

}  // namespace

TurnOutcome World::commit_turn(const Turn& turn) {
  TurnOutcome outcome;
  if (turn.step) {
    outcome.step.emplace();
    if (is_step_of(*this, turn.step->token.execution, turn.token.execution)) outcome.step = finish(*turn.step);
    outcome.effects = std::exchange(outcome.step->effects, {});
    if (outcome.step->accepted) claim_following(*this, turn, outcome.effects);
  }
  Execution* run = find(turn.token.execution);
  if (!run || run->kind != Kind::workflow) return outcome;
  if (!turn.name_space.empty() && turn.name_space != run->name_space) return outcome;
  const LeaseToken token = turn.step ? turn.token.next() : turn.token;
  if (!is_current(*run, token)) {
    const std::optional<Status> before = first_answer_to(*run, token);
    outcome.accepted = before || was_reported(*run, token);
    if (outcome.accepted) {
      outcome.status = before.value_or(run->status);
    } else if (is_closed(run->status)) {
      keep_completed(*this, *run, turn);
    }
    return outcome;
  }
  if (was_kept_before(*run, turn)) {
    outcome.accepted = true;
    outcome.status = run->status;
    return outcome;
  }
  for (const Turn::Start& start : turn.starts) {
    if (start.begun && find(id_of(run->id, start)))
      return outcome;  // from a life of the run that the worker does not know
  }
  outcome.status = commit(*this, run, turn, outcome.effects);
  outcome.accepted = true;
  return outcome;
}

}  // namespace hapax::oracle
