// Turns of workflows, and the steps that run within them.
//
// Where the code waits for one task alone, and the engine lets it begin (Engine::begin_within_turn), the thread that
// ran the code runs the task: before the commit that creates it. Then both are committed, the task as completed, and
// the turn goes on under its lease; so a row of quick steps takes one commit each. A task that takes longer than a
// moment, or fails, is told of by itself: its turn is committed as one that waits for it, and it is a task like any
// other from then on, with a lease of its own.
#include <algorithm>

#include "sdk/thrown.h"
#include "sdk/worker.h"

namespace hapax::detail {

namespace {

using namespace std::chrono_literals;

constexpr auto kMoment = 50ms;  // that a step may take within its turn, before it is committed as running

std::shared_ptr<const Execution> claimed_run(const std::shared_ptr<RunningTask>& turn) {
  return {turn, &turn->execution};
}

}  // namespace

void Worker::run_turn(const std::shared_ptr<RunningTask>& task) {
  const auto start = Steady::now();
  std::shared_ptr<OpenTurn> turn;
  try {
    turn = std::make_shared<OpenTurn>(turns_.open(task->execution, task->events));
  } catch (const std::exception&) {  // its history cannot be read now, or there is no memory for its stack
    return give_back(*task);
  }
  note_duration(Steady::now() - start);
  run_steps(task, turn);
}

void Worker::end_turn(const std::shared_ptr<RunningTask>& task, OpenTurn& turn) {
  if (const auto* stuck = std::get_if<Turn::Stuck>(&turn.request.end)) {
    app_.telling().tell(WorkflowStuck{task->execution.idempotency_key.value_or(""), task->execution.type,
                                      stuck->error.type, stuck->error.message});
  }
  turns_.keep(turn);
  turn.request.run = claimed_run(task);
  commit_turn({.task = task,
               .request = std::make_shared<const TurnRequest>(std::move(turn.request)),
               .give_up_at = Steady::now() + options_.lease});
}

// ---- steps within turns

// As far as this worker can tell.
bool Worker::may_begin(OpenTurn& turn) const {
  if (on_attempt_end_ || options_.kept_workflows == 0) return false;
  if (!turn.is_first_try || !turn.run || turn.run->was_resumed()) return false;
  const TurnRequest::Command* step = turn.lone_step();
  return step && step->start && tasks_.contains(step->start->type);
}

// Runs the step that the turn waits for, if it may begin within it, and lets the code continue; otherwise the turn is
// over.
void Worker::run_steps(const std::shared_ptr<RunningTask>& task, const std::shared_ptr<OpenTurn>& turn) {
  const auto step = may_begin(*turn) ? begin_step(task, turn) : nullptr;
  if (!step) return end_turn(task, *turn);
  const auto start = Steady::now();
  Report report = run_handler(*declared_for(tasks_, step->step->execution.type), *step->step, app_.name_space());
  note_duration(Steady::now() - start);
  tell_attempt(*step->step, report, Steady::now() - start);
  const auto* completed = std::get_if<Report::Completed>(&report.outcome);
  const std::optional<std::string> result = completed ? completed->result : std::nullopt;
  if (!end_step(step, std::move(report))) return;

  TurnRequest done = turns_.go_on(*turn, result, step->step->now());
  const bool is_stuck = std::holds_alternative<Turn::Stuck>(turn->request.end);
  if (is_stuck || may_begin(*turn)) return keep_unfinished(task, turn, std::move(done));
  std::move(turn->request.commands.begin(), turn->request.commands.end(), std::back_inserter(done.commands));
  done.end = std::move(turn->request.end);
  turn->request = std::move(done);
  end_turn(task, *turn);
}

// Commits what is done before anything else begins.
void Worker::keep_unfinished(const std::shared_ptr<RunningTask>& task, const std::shared_ptr<OpenTurn>& turn,
                             TurnRequest done) {
  done.end = Turn::Unfinished{};
  done.run = claimed_run(task);
  commit_turn({.task = task,
               .request = std::make_shared<const TurnRequest>(std::move(done)),
               .then =
                   [this, task, turn](const TurnOutcome& outcome) {
                     if (outcome.accepted && outcome.status == Status::running) {
                       std::lock_guard lock(mutex_);
                       queued_.push_back({task, turn});
                       arrived_.notify_one();
                       return;
                     }
                     turns_.discard(*turn);
                     outcome.accepted ? let_go(*task) : give_back(*task);
                   },
               .give_up_at = Steady::now() + options_.lease});
}

std::shared_ptr<Worker::StepInTurn> Worker::begin_step(const std::shared_ptr<RunningTask>& task,
                                                       const std::shared_ptr<OpenTurn>& turn) {
  {
    std::lock_guard lock(mutex_);
    if (draining_ || app_.stop_requested || task->cancel_requested) return nullptr;
  }
  auto execution = app_.engine().begin_within_turn(
      task->execution, {.name_space = app_.name_space(), .queues = queues_, .worker = name_, .lease = options_.lease},
      *turn->lone_step());
  if (!execution) return nullptr;
  const auto running = std::make_shared<RunningTask>(Claimed{*std::move(execution), {}}, &app_);
  auto step = std::make_shared<StepInTurn>(StepInTurn{.task = task, .step = running, .turn = turn});
  std::lock_guard lock(mutex_);
  in_turns_.insert(step);
  return step;
}

// True if it completed within the turn. Otherwise it is reported by itself, after the turn that asked for it.
bool Worker::end_step(const std::shared_ptr<StepInTurn>& step, Report report) {
  std::unique_lock lock(mutex_);
  in_turns_.erase(step);
  const bool was_told = step->is_told;
  const bool has_notes = step->step->has_unsent_notes();  // there is no lease yet to send them under
  if (!was_told && !has_notes && std::holds_alternative<Report::Completed>(report.outcome)) return true;
  if (step->is_known) {
    lock.unlock();
    if (has_notes || !follow(step->step, report)) this->report(step->step, std::move(report), {});
    return false;
  }
  step->end = std::move(report);
  if (was_told) return false;
  step->is_told = true;
  lock.unlock();
  tell(step);
  return false;
}

// A step that takes too long. With the lock held.
std::shared_ptr<Worker::StepInTurn> Worker::step_to_tell() {
  for (const auto& step : in_turns_) {
    if (step->is_told || Steady::now() - step->began < kMoment) continue;
    step->is_told = true;
    return step;
  }
  return nullptr;
}

// Commits the turn as waiting for the step, which is running.
void Worker::tell(const std::shared_ptr<StepInTurn>& step) {
  turns_.keep(*step->turn);
  commit_turn({.task = step->task,
               .request = std::make_shared<const TurnRequest>(std::move(step->turn->request)),
               .then =
                   [this, step](const TurnOutcome&) {
                     std::unique_lock lock(mutex_);
                     held_.emplace(step->step->token, step->step);  // from now on there is a lease to keep
                     step->is_known = true;
                     const bool has_ended = step->end.has_value();
                     lock.unlock();
                     let_go(*step->task);
                     if (has_ended) report(step->step, *std::move(step->end), {});
                   },
               .give_up_at = Steady::now() + options_.lease});
}

// ---- turns that follow steps

// If a workflow that this worker keeps waits for the task alone, it continues at once, and both are committed together.
bool Worker::follow(const std::shared_ptr<RunningTask>& task, const Report& report) {
  if (on_attempt_end_ || !follows_) return false;  // the observer of reports gets each of them
  std::optional<TurnRequest> request = turns_.follow(*task, report);
  if (!request) return false;
  const auto turn = std::make_shared<const TurnRequest>(*std::move(request));
  app_.engine().commit_turns({*turn}, [this, task, turn](Answer<std::vector<TurnOutcome>> answers) {
    followed(task, *turn, std::move(answers));
  });
  return true;
}

// Whatever becomes of the turn must not keep the task from ending: then the task is reported by itself. If it has
// ended, the report is a repetition.
void Worker::followed(const std::shared_ptr<RunningTask>& task, const TurnRequest& turn,
                      Answer<std::vector<TurnOutcome>> answers) {
  bool has_ended = false;
  try {
    const TurnOutcome outcome = std::move(answers).get().at(0);
    has_ended = outcome.step && outcome.step->accepted;
    outcome.accepted ? turns_.accepted(turn) : turns_.refused(turn.token.execution);
  } catch (const Failure& failure) {
    turns_.refused(turn.token.execution);
    if (!failure.safe_to_retry()) follows_ = false;  // a server that does not support it
  }
  has_ended ? let_go(*task) : report(task, *turn.step, {});
}

// ---- committing

// Committed beside other turns, without holding up the thread that ran it.
void Worker::commit_turn(const UnheardTurn& turn) {
  app_.engine().commit_turns({*turn.request}, [this, turn](Answer<std::vector<TurnOutcome>> answers) {
    TurnOutcome outcome;
    try {
      outcome = std::move(answers).get().at(0);
    } catch (const Failure& failure) {
      return repeat_later(turn, failure);
    }
    if (!outcome.accepted) {
      turns_.refused(turn.task->execution.id);
      tell_lease_lost(*turn.task);
    }
    turn.then ? turn.then(outcome) : let_go(*turn.task);
  });
}

// A turn may be repeated under its token; after the lease it is useless. One that can never be accepted (too large to
// send) leaves the workflow stuck, where it can be repaired.
void Worker::repeat_later(UnheardTurn turn, const Failure& failure) {
  const bool was_stuck = std::holds_alternative<Turn::Stuck>(turn.request->end);
  turns_.refused(turn.task->execution.id);
  if (Steady::now() >= turn.give_up_at || (!failure.safe_to_retry() && was_stuck)) {
    return turn.then ? turn.then(TurnOutcome()) : let_go(*turn.task);
  }
  if (!failure.safe_to_retry()) {
    TurnRequest stuck;
    stuck.token = turn.request->token;
    stuck.name_space = turn.request->name_space;
    stuck.seen = turn.request->seen;
    stuck.end = Turn::Stuck{presentable_error("TurnRefused", failure.what())};
    turn.request = std::make_shared<const TurnRequest>(std::move(stuck));
  }
  turn.again_at = Steady::now() + turn.pause;
  turn.pause = std::min(2 * turn.pause, kLongestPause);
  std::lock_guard lock(mutex_);
  unheard_.push_back(std::move(turn));
}

std::vector<Worker::UnheardTurn> Worker::turns_to_repeat() {
  std::vector<UnheardTurn> due;
  std::erase_if(unheard_, [&](const UnheardTurn& turn) {
    if (turn.again_at > Steady::now()) return false;
    due.push_back(turn);
    return true;
  });
  return due;
}

}  // namespace hapax::detail
