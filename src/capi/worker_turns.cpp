// Turns that the program ran, and the steps that run within them.
//
// Where the code waits for one task alone, and the engine lets it begin, the program is given the task before the turn
// is committed. It completes the task, is given the turn again with that outcome, and runs on; then both are committed.
// A task that takes longer than a moment, or fails, is committed as running, and is a task like any other from then on.
// These are the rules of sdk/worker_turns.cpp, for code that runs in the program.
#include <algorithm>
#include <utility>

#include "capi/worker.h"
#include "core/field.h"
#include "core/json_writer.h"
#include "sdk/thrown.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"

namespace hapax::capi {

namespace {

using namespace std::chrono_literals;

constexpr auto kMoment = 50ms;  // that a step may take within its turn, before it is committed as running
constexpr Duration kFirstPause{50}, kLongestPause{2000};
constexpr std::size_t kMostOwnRuns = 10'000;
constexpr std::string_view kItem = "/turns/0";

// The turn, and the step that its code waits for alone; 0: none.
std::pair<TurnRequest, std::int64_t> read_turn(Json document) {
  std::int64_t waits_for = 0;
  if (const Json* step = document.find("waits_for"); step && !step->is(Json::Kind::null)) {
    const auto number = step->as_int();
    if (!number || *number < 1) throw InvalidField("/waits_for", "must be the number of a step");
    waits_for = *number;
  }
  std::erase_if(document.members, [](const auto& member) { return member.first == "waits_for"; });
  Json list, batch;
  list.kind = Json::Kind::array;
  list.items.push_back(with_lease(std::move(document)));
  batch.kind = Json::Kind::object;
  batch.members.emplace_back("turns", std::move(list));
  try {
    return {std::move(wire::read_turns(std::move(batch)).at(0).turn), waits_for};
  } catch (const InvalidField& error) {
    const std::string& pointer = error.pointer();
    if (!pointer.starts_with(kItem)) throw;
    throw InvalidField(pointer.substr(kItem.size()), error.what(), error.code());
  }
}

// The events that the commit of this turn will make, if nothing else happens: its commands, and the end of its last.
std::vector<Event> events_of(const TurnRequest& turn, const ExecutionId& step, const Report::Completed& completed,
                             Time now) {
  std::vector<Event> events;
  std::int64_t no = turn.seen;
  for (const TurnRequest::Command& command : turn.commands) {
    events.push_back(command.event);
    events.back().no = ++no;
    events.back().at = now;
  }
  events.back().execution = step;
  Event closed;
  closed.no = ++no;
  closed.at = now;
  closed.kind = Event::Kind::closed;
  closed.step = events.back().step;
  closed.execution = step;
  closed.status = Status::completed;
  closed.value = completed.result;
  events.push_back(std::move(closed));
  return events;
}

}  // namespace

// A turn on its way to the engine.
struct Worker::Commit {
  HeldClaim held;
  std::shared_ptr<const TurnRequest> request;
  Committed then;
  Steady::time_point give_up_at;
  Duration pause = kFirstPause;
};

void Worker::turn(std::uint64_t claim, const char* turn, std::size_t size) {
  std::shared_ptr<TurnRequest> request;
  std::int64_t waits_for = 0;
  try {
    if (turn != nullptr) {
      auto [read, step] = read_turn(parse_given({turn, size}));
      request = std::make_shared<TurnRequest>(std::move(read));
      waits_for = step;
    }
  } catch (const std::exception&) {
    return refuse(claim, std::current_exception());
  }
  const HeldClaim held = take_from_program(claim, turns);
  if (!held) return;
  if (!request) {
    if (!held->done) return give_back(held);
    TurnRequest done = *std::exchange(held->done, std::nullopt);
    return commit_unfinished(held, std::move(done), [this, held] { give_back(held); });
  }
  request->token = held->task.token;
  request->name_space = place_.name_space;
  run_turn(held, std::move(request), waits_for);
}

void Worker::run_turn(const HeldClaim& held, std::shared_ptr<TurnRequest> request, std::int64_t waits_for) {
  const bool begins = may_begin(*held, *request, waits_for);
  if (held->done) {
    TurnRequest done = *std::exchange(held->done, std::nullopt);
    if (begins || std::holds_alternative<Turn::Stuck>(request->end)) {
      return commit_unfinished(held, std::move(done), [this, held, request, waits_for] {
        timer_.soon([this, held, request, waits_for] { run_turn(held, request, waits_for); });
      });
    }
    std::move(request->commands.begin(), request->commands.end(), std::back_inserter(done.commands));
    done.end = std::move(request->end);
    return end_turn(held, std::make_shared<TurnRequest>(std::move(done)));
  }
  if (begins && begin_step(held, request)) return;
  end_turn(held, std::move(request));
}

// ---- steps within turns

// As far as this worker can tell. A turn in which a worker was lost, or of a run that was resumed, begins no steps.
bool Worker::may_begin(const Held& held, const TurnRequest& request, std::int64_t waits_for) const {
  if (waits_for == 0 || request.commands.empty() || !std::holds_alternative<Turn::Suspended>(request.end)) return false;
  const TurnRequest::Command& last = request.commands.back();
  if (last.event.kind != Event::Kind::task || last.event.step != waits_for) return false;
  if (options_.types && !options_.types->contains(last.event.name)) return false;
  const auto is_resumed = [](const Event& event) { return event.kind == Event::Kind::resumed; };
  if (std::any_of(held.task.events.begin(), held.task.events.end(), is_resumed)) return false;
  const std::lock_guard lock(mutex_);
  return held.task.execution.attempt == 1 || own_runs_.contains(held.task.execution.id);
}

bool Worker::begin_step(const HeldClaim& held, const std::shared_ptr<TurnRequest>& request) {
  {
    const std::lock_guard lock(mutex_);
    if (is_draining_ || held->task.cancel_requested) return false;
  }
  auto execution = place_.engine->begin_within_turn(
      held->task.execution,
      {.name_space = place_.name_space, .queues = options_.queues, .worker = options_.name, .lease = options_.lease},
      request->commands.back());
  if (!execution) return false;
  auto within = std::make_shared<StepInTurn>(StepInTurn{held, nullptr, request});
  {
    const std::lock_guard lock(mutex_);
    const HeldClaim step = hold(tasks, {*std::move(execution), {}});
    step->has_lease = false;
    step->is_counted = false;
    step->within = within;
    within->step = step;
    step->time_over = timer_.after(kMoment, [this, within] {
      {
        const std::lock_guard others(mutex_);
        if (!within->step->is_with_program || std::exchange(within->is_told, true)) return;
      }
      tell_step(within);
    });
  }
  deliver(within->step);
  return true;
}

// The program has reported a step that was given to it within a turn.
void Worker::end_step(const HeldClaim& step, Report said) {
  const std::shared_ptr<StepInTurn> within = step->within;
  const auto* completed = std::get_if<Report::Completed>(&said.outcome);
  bool has_completed = false, is_known = false, is_to_tell = false;
  {
    const std::lock_guard lock(mutex_);
    has_completed = completed && !within->is_told;
    is_known = within->is_known;
    is_to_tell = !has_completed && !std::exchange(within->is_told, true);
    if (!has_completed && !is_known) within->end = said;
  }
  if (has_completed) return continue_turn(within, *completed);
  if (is_known) return report(step, std::move(said));
  if (is_to_tell) tell_step(within);
}

// Gives the turn to the program again, with the outcome of the step, as if it had been claimed again.
void Worker::continue_turn(const std::shared_ptr<StepInTurn>& within, const Report::Completed& completed) {
  const HeldClaim turn = within->turn;
  TurnRequest done = std::move(*within->request);
  done.commands.back().within_turn->begun.completed = completed;
  auto claim = std::make_shared<Claimed>(Claimed{turn->task.execution, {}});
  claim->events = events_of(done, within->step->task.execution.id, completed, within->step->task.now());
  claim->execution.run.seen = done.seen;
  claim->execution.run.events = claim->events.back().no;
  claim->execution.run.steps = done.commands.back().event.step;
  {
    const std::lock_guard lock(mutex_);
    held_.erase(within->step->number);
    turn->done = std::move(done);
    turn->is_with_program = true;
  }
  within->step->within.reset();
  queue_->tell({.token = turn->number, .kind = HAPAX_TURN, .worker = handle_, .make = [claim] {
                  JsonWriter out;
                  wire::write_claim(out, *claim);
                  std::string body = out.take();
                  body.replace(body.size() - 1, 1, R"(,"continues":true})");
                  return http::json_response(200, std::move(body));
                }});
}

// Commits the turn as waiting for the step, which is running.
void Worker::tell_step(const std::shared_ptr<StepInTurn>& within) {
  within->request->run = {within->turn, &within->turn->task.execution};
  const auto then = [this, within](const TurnOutcome& outcome) {
    std::optional<Report> end;
    bool is_given_back = false;
    {
      const std::lock_guard lock(mutex_);
      within->step->has_lease = true;  // from now on there is one to keep
      within->is_known = true;
      end = std::exchange(within->end, std::nullopt);
      is_given_back = within->is_given_back;
    }
    outcome.accepted ? release(within->turn) : lose(within->turn);
    if (end) report(within->step, *std::move(end));
    if (is_given_back) give_back(within->step);
  };
  remember(within->turn->task.execution.id);
  commit(std::make_shared<Commit>(Commit{within->turn, within->request, then, Steady::now() + options_.lease}));
}

// ---- committing

// What is done is committed before anything else begins. The turn keeps its lease.
void Worker::commit_unfinished(const HeldClaim& held, TurnRequest done, std::function<void()> then) {
  done.end = Turn::Unfinished{};
  done.run = {held, &held->task.execution};
  auto request = std::make_shared<const TurnRequest>(std::move(done));
  commit(std::make_shared<Commit>(Commit{held, std::move(request),
                                         [this, held, then = std::move(then)](const TurnOutcome& outcome) {
                                           if (outcome.accepted && outcome.status == Status::running) return then();
                                           forget(held->task.execution.id);  // something else has happened to the run
                                           lose(held);
                                         },
                                         Steady::now() + options_.lease}));
}

void Worker::end_turn(const HeldClaim& held, std::shared_ptr<TurnRequest> request) {
  request->run = {held, &held->task.execution};
  if (std::holds_alternative<Turn::Suspended>(request->end)) remember(held->task.execution.id);
  commit(std::make_shared<Commit>(Commit{held, std::move(request),
                                         [this, held](const TurnOutcome& outcome) {
                                           if (outcome.accepted) return release(held);
                                           forget(held->task.execution.id);
                                           lose(held);
                                         },
                                         Steady::now() + options_.lease}));
}

void Worker::commit(const std::shared_ptr<Commit>& commit) {
  {
    const std::lock_guard lock(mutex_);
    ++asking_;
  }
  Reply<std::vector<TurnOutcome>> reply = [this, commit](Answer<std::vector<TurnOutcome>> answers) {
    try {
      const TurnOutcome outcome = std::move(answers).get().at(0);
      commit->then(outcome);
    } catch (const Failure& failure) {
      commit_failed(commit, failure);
    }
    answered();
  };
  place_.engine->commit_turns({*commit->request}, std::move(reply));
}

// A turn may be repeated under its token; after the lease it is useless. One that can never be accepted (too large to
// send) leaves the workflow stuck, where it can be repaired.
void Worker::commit_failed(const std::shared_ptr<Commit>& commit, const Failure& failure) {
  const bool was_stuck = std::holds_alternative<Turn::Stuck>(commit->request->end);
  const auto again_at = Steady::now() + commit->pause;
  if (again_at >= commit->give_up_at || (!failure.safe_to_retry() && was_stuck)) return commit->then(TurnOutcome());
  if (!failure.safe_to_retry()) {
    TurnRequest stuck;
    stuck.token = commit->request->token;
    stuck.name_space = commit->request->name_space;
    stuck.seen = commit->request->seen;
    stuck.end = Turn::Stuck{detail::presentable_error("TurnRefused", failure.what())};
    commit->request = std::make_shared<const TurnRequest>(std::move(stuck));
  }
  commit->pause = std::min(2 * commit->pause, kLongestPause);
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return;
  unheard_.push_back(commit);
  timer_.at(again_at, [this] { commit_again(); });
}

void Worker::commit_again() {
  std::vector<std::shared_ptr<Commit>> again;
  {
    const std::lock_guard lock(mutex_);
    again.swap(unheard_);
    asking_ += again.size();  // so that nobody takes it for quiet in between
  }
  for (const auto& each : again) commit(each);
  const std::lock_guard lock(mutex_);
  asking_ -= again.size();
  end_if_quiet();
}

void Worker::remember(const ExecutionId& run) {
  const std::lock_guard lock(mutex_);
  if (!own_runs_.insert(run).second) return;
  own_runs_in_order_.push_back(run);
  if (own_runs_in_order_.size() <= kMostOwnRuns) return;
  own_runs_.erase(own_runs_in_order_.front());
  own_runs_in_order_.pop_front();
}

void Worker::forget(const ExecutionId& run) {
  const std::lock_guard lock(mutex_);
  own_runs_.erase(run);
}

}  // namespace hapax::capi
