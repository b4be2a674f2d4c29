#include <set>
#include <string>

#include "store/rules/step.h"
#include "store/rules/workflow.h"

namespace hapax::rules {

namespace {

// What a fork from that step knows from the start: the steps before it and their outcomes, and the signals that had
// arrived by then.
std::vector<Event> before_step(const std::vector<Event>& events, std::int32_t from_step) {
  std::int64_t asked = INT64_MAX;
  for (const Event& event : events) {
    if (is_command(event.kind) && event.step == from_step) asked = event.no;
  }
  std::set<std::string> taken;  // signals, by the steps that stay
  for (const Event& event : events) {
    if (is_outcome(event) && event.step < from_step && event.key) taken.insert(*event.key);
  }
  std::vector<Event> kept;
  for (Event event : events) {
    const bool of_step = (is_command(event.kind) || is_outcome(event)) && event.step < from_step;
    const bool early_signal = event.kind == Event::Kind::signal && event.step == 0 && event.no < asked;
    if (!of_step && (!early_signal || taken.contains(std::to_string(event.no)))) continue;
    if (event.kind == Event::Kind::signal) event.key.reset();  // the event that it names stays behind
    kept.push_back(std::move(event));
  }
  return kept;
}

Execution fresh(Execution copy) {
  copy.parent.reset();
  copy.step = 0;
  copy.parent_workflow_id.clear();
  copy.superseded.reset();
  copy.awaited = false;
  copy.deadline_at.reset();
  copy.status = Status::pending;
  copy.attempt = 0;
  copy.started_at.reset();
  copy.finished_at.reset();
  copy.cancel_requested_at.reset();
  copy.cancel_by.reset();
  copy.result.reset();
  copy.error.reset();
  copy.failed_attempts.clear();
  copy.worker.clear();
  copy.lease_secret.reset();
  copy.lease_expires_at.reset();
  copy.attempt_ends_by.reset();
  copy.run = RunState();
  return copy;
}

// The submission of a step that failed, for the new run.
Submission again(const Execution& step, const ExecutionId& old_run, const Execution& run, std::int32_t number) {
  Submission submission;
  submission.execution = fresh(step);
  if (step.kind == Kind::workflow && step.idempotency_key == child_workflow_id(old_run, number)) {
    submission.execution.idempotency_key = child_workflow_id(run.id, number);
    submission.execution.identity = workflow_identity(run.name_space, *submission.execution.idempotency_key);
  }
  return submission;
}

void start_open_steps(Rows& rows, const ExecutionId& old_run, Execution& run, std::vector<Event>& events,
                      Effects& effects) {
  std::vector<bool> settled(static_cast<std::size_t>(run.run.steps) + 1);
  for (const Event& event : events) {
    if (is_outcome(event)) settled.at(static_cast<std::size_t>(event.step)) = true;
  }
  std::vector<Event> outcomes;
  for (Event& event : events) {
    if (event.kind == Event::Kind::signal && event.step == 0) rows.put_signal(run.id, event);
    if (!is_command(event.kind) || settled.at(static_cast<std::size_t>(event.step))) continue;
    if (event.kind == Event::Kind::sleep || event.kind == Event::Kind::wait_signal) {
      start_wait(rows, run, event, outcomes);
    } else if (event.execution) {
      if (const auto step = rows.load(*event.execution)) {
        start_step(rows, run, event, again(*step, old_run, run, event.step), outcomes, effects);
      } else {
        outcomes.push_back(expired(event.step));
      }
    }
  }
  events.insert(events.end(), outcomes.begin(), outcomes.end());
}

}  // namespace

ControlOutcome fork(Rows& rows, const Execution& old, const ControlRequest& request) {
  ControlOutcome outcome;
  outcome.status = old.status;
  outcome.steps = old.run.steps;
  if (request.from_step < 1 || request.from_step > old.run.steps + 1) {
    outcome.kind = ControlOutcome::Kind::no_such_step;
    return outcome;
  }
  Submission submission;
  submission.reuse = Reuse::reject;
  submission.execution = fresh(old);
  submission.execution.id = request.fork_id;
  submission.execution.idempotency_key = request.fork_workflow_id;
  submission.execution.identity = request.fork_identity;
  const SubmitOutcome submitted = rows.submit(submission);
  if (submitted.kind != SubmitOutcome::Kind::created) {
    outcome.kind = ControlOutcome::Kind::identity_taken;
    outcome.other = submitted.execution.id;
    return outcome;
  }

  Execution run = rows.load(submitted.execution.id).value();
  run.run.steps = request.from_step - 1;
  std::vector<Event> events = before_step(rows.events(old.id), request.from_step);
  Event forked;
  forked.kind = Event::Kind::forked;
  forked.step = request.from_step;
  forked.execution = old.id;
  forked.at = rows.now();
  events.insert(events.begin(), forked);
  for (Event& event : events) event.no = ++run.run.events;
  const auto copied = static_cast<std::ptrdiff_t>(events.size());
  start_open_steps(rows, old.id, run, events, outcome.effects);
  for (auto event = events.begin() + copied; event != events.end(); ++event) number(run, *event, rows.now());
  rows.append(run.id, events);
  rows.save(run);
  announce(run, outcome.effects);
  outcome.execution = run.id;
  outcome.changed = true;
  outcome.status = run.status;
  return outcome;
}

}  // namespace hapax::rules
