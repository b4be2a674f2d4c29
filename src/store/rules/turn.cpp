#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/invariant.h"
#include "core/retry.h"
#include "core/transition.h"
#include "store/rules/close.h"
#include "store/rules/finish.h"
#include "store/rules/hand_out.h"
#include "store/rules/step.h"
#include "store/rules/workflow.h"

namespace hapax::rules {

namespace {

// Fires the waits that are due. The rest says when to look again.
std::vector<Event> fire_due(Rows& rows, Execution& run) {
  std::vector<Event> fired;
  run.run.wake_at.reset();
  for (const Wait& wait : rows.waits_of(run.id)) {
    if (!wait.until) continue;
    if (*wait.until > rows.now()) {
      keep_earliest(run.run.wake_at, wait.until);
      continue;
    }
    Event event;
    event.kind = Event::Kind::fired;
    event.step = wait.step;
    fired.push_back(event);
    rows.erase_wait(run.id, wait.step);
  }
  return fired;
}

void append(Rows& rows, Execution& run, std::vector<Event>& events) {
  if (events.empty()) return;
  for (Event& event : events) number(run, event, rows.now());
  rows.append(run.id, events);
}

// Stores a run as its turn leaves it. The last turn of a completed run needs no record: the run keeps its lease for
// good.
void save_committed(Rows& rows, Execution& run) {
  if (run.status != Status::completed) remember_turn(run);
  rows.save(run);
}

// Stores a run that has just been closed, with the event that says so, and notifies all who wait for it.
void store_closed(Rows& rows, Execution& run, Effects& effects) {
  save_committed(rows, run);
  effects.closed.push_back({run.id, run.name_space, run.queue, run.kind, run.type});
  after_close(rows, run, effects);
}

// The first step of the turn that is not the next one of the run.
std::optional<AttemptError> misnumbered(const Execution& run, const Turn& turn) {
  std::int32_t next = run.run.steps;
  for (const Event& event : turn.events) {
    if (!is_command(event.kind)) continue;
    if (event.step == ++next) continue;
    return AttemptError{"InvalidTurn", fmt::format("the turn sent step {} where step {} comes next", event.step, next)};
  }
  return std::nullopt;
}

// A step that its worker began within the turn. The worker knows its outcome so far, and everything before.
void ask_for_begun(Rows& rows, Execution& run, const Turn& turn, const Turn::Start& start, std::vector<Event>& asked,
                   Effects& effects) {
  const Execution step = store_begun(rows, run, start);
  asked.back().execution = step.id;
  keep_earliest(effects.next_due, step.due_at());
  if (!is_closed(step.status)) return;
  asked.push_back(outcome_of(start.step, step));
  if (run.run.events == turn.seen) run.run.seen = turn.seen + std::ssize(asked);
}

void ask(Rows& rows, Execution& run, const Turn& turn, Effects& effects, bool& news) {
  const std::int64_t before = run.run.events;
  std::int64_t own = 0;  // events of this turn that are appended
  std::vector<Event> asked, outcomes;
  const auto append_asked = [&] {
    append(rows, run, asked);
    own += std::ssize(asked);
    asked.clear();
  };
  auto start = turn.starts.begin();
  for (const Event& event : turn.events) {
    if (!is_command(event.kind)) {
      outcomes.push_back(event);
      continue;
    }
    Event& command = asked.emplace_back(event);
    invariant(command.step == run.run.steps + 1, "steps are counted without gaps");
    run.run.steps = command.step;
    if (start != turn.starts.end() && start->step == command.step) {
      if (start->begun) {
        ask_for_begun(rows, run, turn, *start, asked, effects);
      } else {
        start_step(rows, run, command, start->submission, outcomes, effects);
      }
      ++start;
      if (is_closed(run.status)) return;
    } else if (command.kind == Event::Kind::sleep || command.kind == Event::Kind::wait_signal) {
      start_wait(rows, run, command, outcomes);
    } else if (command.kind == Event::Kind::cancel_step || command.kind == Event::Kind::send_signal) {
      const Event acts = command;
      append_asked();  // what follows from it comes after it
      const auto act = acts.kind == Event::Kind::cancel_step ? cancel_step : send_signal;
      act(rows, run, acts, outcomes, effects);
      if (is_closed(run.status)) return;
    }
  }
  append_asked();
  append(rows, run, outcomes);
  // A step that replaces another of this run has an outcome for that one.
  news = news || !outcomes.empty() || run.run.events - before > own;
}

void suspend(Rows& rows, Execution& run, Effects& effects, bool news) {
  run.status = Status::suspended;
  if (run.run.wake_at && *run.run.wake_at <= rows.now()) {
    std::vector<Event> fired = fire_due(rows, run);
    news = news || !fired.empty();
    append(rows, run, fired);
  }
  if (news) wake(run, effects, rows.now());
  keep_earliest(effects.next_due, run.due_at());
  save_committed(rows, run);
}

// Keeps what the turn has done so far, and its lease. A turn that followed a step has none to continue under.
void keep_unfinished(Rows& rows, Execution& run, const Turn& turn, Effects& effects, bool news) {
  if (news || turn.step) {
    end_turn(run);
    return suspend(rows, run, effects, true);
  }
  run.run.seen = run.run.events;
  rows.save(run);
}

void be_stuck(Rows& rows, Execution& run, const AttemptError& error, Effects& effects) {
  run.run.stuck += 1;
  if (run.error != error) {
    run.error = error;
    Event event;
    event.kind = Event::Kind::stuck;
    event.error = error;
    std::vector<Event> events{event};
    append(rows, run, events);
  }
  run.status = Status::suspended;
  keep_earliest(run.run.wake_at, rows.now() + backoff(run.retry, run.id, run.run.stuck));
  keep_earliest(effects.next_due, run.due_at());
  save_committed(rows, run);
}

// Signals that no step has waited for carry over to the next run.
void take_signals_along(Rows& rows, const Execution& run, Execution& next) {
  std::vector<Event> signals;
  for (const Event& event : rows.events(run.id)) {
    if (event.kind != Event::Kind::signal || event.step != 0) continue;
    if (auto signal = rows.take_signal(run.id, event.name)) signals.push_back(*std::move(signal));
  }
  if (signals.empty()) return;
  append(rows, next, signals);
  for (const Event& signal : signals) rows.put_signal(next.id, signal);
  rows.save(next);
}

void go_on_as(Rows& rows, Execution& run, const Turn::Continued& continued, Effects& effects) {
  Execution next = run;
  next.id = continued.id;
  next.input = continued.input;
  next.input_hash = continued.input_hash;
  next.status = Status::pending;
  next.created_at = std::max(rows.now(), run.created_at);
  next.run_at = rows.now();
  next.attempt = 0;
  next.started_at.reset();
  next.worker.clear();
  next.lease_secret.reset();
  next.run = RunState();
  next.superseded.reset();
  next.cancel_requested_at.reset();
  next.cancel_by.reset();

  close_run(run, Status::completed, rows.now());
  run.run.continued_as = next.id;
  Event event;
  event.kind = Event::Kind::continued;
  event.execution = next.id;
  std::vector<Event> events{event};
  append(rows, run, events);
  for (Wait wait : rows.waits_on(run.id)) {
    rows.erase_wait(wait.run, wait.step);
    wait.on = next.id;
    rows.put_wait(wait);
  }
  rows.insert(next, Duration(0));
  take_signals_along(rows, run, next);
  if (next.identity) give_identity(rows, next);
  announce(next, effects);
  store_closed(rows, run, effects);
}

void end(Rows& rows, Execution& run, const Turn& turn, Effects& effects, bool news) {
  if (const auto* completed = std::get_if<Turn::Completed>(&turn.end)) {
    run.result = completed->result;
    close_run(run, Status::completed, rows.now());
    store_closed(rows, run, effects);
  } else if (const auto* failed = std::get_if<Turn::Failed>(&turn.end)) {
    run.error = failed->error;
    const bool is_cancelled = run.cancel_requested_at && failed->error.type == kCancelRequested;
    close_run(run, is_cancelled ? Status::cancelled : Status::failed, rows.now());
    store_closed(rows, run, effects);
  } else if (const auto* continued = std::get_if<Turn::Continued>(&turn.end)) {
    go_on_as(rows, run, *continued, effects);
  } else if (std::holds_alternative<Turn::Unfinished>(turn.end)) {
    keep_unfinished(rows, run, turn, effects, news);
  } else {
    suspend(rows, run, effects, news);
  }
}

// The report on a step of this run, which is there: so that nothing of the step is deleted with its end.
FinishOutcome finish_step(Rows& rows, const ExecutionId& run, const Report& report) {
  auto step = rows.load(report.token.execution);
  if (!step || step->parent != run || !rows.exists(run)) return {};
  return finish(rows, *std::move(step), report);
}

// Claims the turn for the worker that ended the step, if nothing else has happened since its last turn.
void go_on_from(Rows& rows, const Turn& turn, Effects& effects) {
  constexpr Duration kLease{1000};  // it ends with this transaction
  auto run = rows.load(turn.token.execution);
  if (!run || run->kind != Kind::workflow || run->run.events != turn.seen) return;
  if (check_token(*run, turn.token, turn.name_space) != TokenCheck::repeated) return;
  if (!may_be_handed_out(*run, rows.policies(), rows.now())) return;
  start_attempt(*run, run->worker, turn.token.next().secret, kLease, rows.now());
  rows.save(*run);
  std::erase_if(effects.ready, [&](const Changed& each) { return each.id == run->id; });
}

// The steps that a worker began within the turn of a run that was closed since: what they did is done, and is kept for
// readers, and for a resume of the run.
void keep_completed(Rows& rows, const Execution& run, const Turn& turn) {
  for (const Turn::Start& start : turn.starts) {
    if (!start.begun || !start.begun->completed) continue;
    if (!rows.load(step_id(run.id, start.submission.execution.type, start.step))) store_begun(rows, run, start);
  }
}

// A task of such an id is there: from a life of this run that its worker does not know of.
bool met_begun(Rows& rows, const Turn& turn) {
  return std::any_of(turn.starts.begin(), turn.starts.end(), [&](const Turn::Start& start) {
    return start.begun && rows.load(step_id(turn.token.execution, start.submission.execution.type, start.step));
  });
}

// That the turn adds to the history: a step that was begun and is completed has two.
std::int64_t events_of(const Turn& turn) {
  return std::ssize(turn.events) + std::count_if(turn.starts.begin(), turn.starts.end(), [](const Turn::Start& start) {
           return start.begun && start.begun->completed;
         });
}

// Under its lease, which it keeps: the answer was lost.
bool was_kept_before(const Execution& run, const Turn& turn) {
  if (!std::holds_alternative<Turn::Unfinished>(turn.end)) return false;
  const auto last =
      std::find_if(turn.events.rbegin(), turn.events.rend(), [](const Event& event) { return is_command(event.kind); });
  return last != turn.events.rend() && run.run.steps >= last->step;
}

}  // namespace

TurnOutcome commit_turn(Rows& rows, const Turn& turn) {
  TurnOutcome outcome;
  if (turn.step) {
    outcome.step = finish_step(rows, turn.token.execution, *turn.step);
    outcome.effects = std::exchange(outcome.step->effects, {});
    if (turn.token.attempt < 1 || turn.token.attempt == INT32_MAX) return outcome;  // no lease was ever so numbered
    if (outcome.step->accepted) go_on_from(rows, turn, outcome.effects);
  }
  auto run = rows.load(turn.token.execution);
  if (!run || run->kind != Kind::workflow) return outcome;
  if (!turn.name_space.empty() && turn.name_space != run->name_space) return outcome;
  const LeaseToken own = turn.step ? turn.token.next() : turn.token;
  const TokenCheck token = check_token(*run, own);
  if (token != TokenCheck::current) {
    const std::optional<Status> before = answer_before(*run, own);
    outcome.accepted = before || token == TokenCheck::repeated;
    if (outcome.accepted) outcome.status = before.value_or(run->status);
    if (!outcome.accepted && is_closed(run->status)) keep_completed(rows, *run, turn);
    return outcome;
  }
  if (!was_kept_before(*run, turn)) {
    if (met_begun(rows, turn)) return outcome;
    const auto* stuck = std::get_if<Turn::Stuck>(&turn.end);
    const auto misnumbering = misnumbered(*run, turn);
    const bool is_too_long = run->run.events + events_of(turn) > rows.policies().history_limit;
    const bool goes_on = std::holds_alternative<Turn::Unfinished>(turn.end) && !misnumbering && !is_too_long;
    if (!goes_on) end_turn(*run);
    if (stuck || misnumbering) {
      be_stuck(rows, *run, stuck ? stuck->error : *misnumbering, outcome.effects);
    } else if (is_too_long) {
      keep_completed(rows, *run, turn);
      run->error =
          AttemptError{"HistoryLimitExceeded",
                       fmt::format("the history would have more than {} events: let the workflow continue as new "
                                   "before that",
                                   rows.policies().history_limit)};
      close_run(*run, Status::failed, rows.now());
      store_closed(rows, *run, outcome.effects);
    } else {
      bool news = run->run.events > turn.seen;
      run->run.seen = turn.seen;
      run->run.stuck = 0;
      run->error.reset();
      ask(rows, *run, turn, outcome.effects, news);
      if (!is_closed(run->status)) end(rows, *run, turn, outcome.effects, news);
    }
  }
  outcome.accepted = true;
  outcome.status = run->status;
  return outcome;
}

void wake_due(Rows& rows, Execution run, Effects& effects) {
  const bool stuck = run.run.stuck > 0;
  std::vector<Event> fired = fire_due(rows, run);
  append(rows, run, fired);
  if (stuck || !fired.empty()) wake(run, effects, rows.now());
  rows.save(run);
}

}  // namespace hapax::rules
