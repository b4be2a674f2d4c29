#include "engine/task_list.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "core/json_writer.h"
#include "engine/event_signal.h"
#include "engine/start_run.h"

namespace hapax {

namespace {

constexpr Duration kWait{20'000};
constexpr Duration kPauseAfterFailure{1000};
constexpr std::int32_t kTurns = 16;
constexpr std::int32_t kHistoryPage = 1000;

TurnRequest turn_of(const Execution& run, std::int64_t seen) {
  TurnRequest turn;
  turn.token = {run.id, run.attempt, run.lease_secret.value()};
  turn.name_space = run.name_space;
  turn.seen = seen;
  return turn;
}

void ask_for_tasks(TurnRequest& turn, const Json& tasks) {
  std::int32_t step = 0;
  for (const Json& task : tasks.items) {
    SubmitRequest start;
    start.type = task.find("type")->text;
    start.input = *task.find("input");
    if (const Json* queue = task.find("queue")) start.queue = queue->text;
    TurnRequest::Command command;
    command.event.kind = Event::Kind::task;
    command.event.step = ++step;
    command.event.name = start.type;
    command.start = std::move(start);
    turn.commands.push_back(std::move(command));
  }
}

void write_outcome(JsonWriter& writer, const Execution& run, const std::string& type, const Event& outcome) {
  writer.begin_object().key("name").string(step_name(run.id, type, outcome.step));
  writer.key("status").string(to_string(outcome.status.value_or(Status::failed)));
  if (outcome.value) writer.key("result").raw(*outcome.value);
  if (outcome.error) {
    writer.key("error").begin_object().key("type").string(outcome.error->type);
    writer.key("message").string(outcome.error->message).end_object();
  }
  writer.end_object();
}

}  // namespace

TurnRequest task_list_turn(const Execution& run, const std::vector<Event>& history) {
  TurnRequest turn = turn_of(run, history.empty() ? 0 : history.back().no);
  const Json input = parse_json(run.input);
  const Json* tasks = input.find("tasks");
  if (!tasks || !tasks->is(Json::Kind::array)) {
    turn.end = Turn::Failed{{"InvalidInput", "a workflow of this type is started by activities only"}};
    return turn;
  }
  std::size_t asked = 0, closed = 0, completed = 0;
  std::string failed;
  JsonWriter outcomes;
  outcomes.begin_object().key("tasks").begin_array();
  for (const Event& event : history) {
    if (event.kind == Event::Kind::task) ++asked;
    if (!is_outcome(event)) continue;
    ++closed;
    const std::string& type = tasks->items.at(static_cast<std::size_t>(event.step) - 1).find("type")->text;
    write_outcome(outcomes, run, type, event);
    if (event.status == Status::completed) {
      ++completed;
    } else if (failed.empty()) {
      failed = step_name(run.id, type, event.step);
    }
  }
  outcomes.end_array().end_object();

  if (asked == 0) ask_for_tasks(turn, *tasks);
  if (closed < tasks->items.size()) {
    turn.end = Turn::Suspended{};
  } else if (completed == closed) {
    turn.end = Turn::Completed{outcomes.take()};
  } else {
    // Ends as a workflow's code would, so that resuming runs what failed again.
    turn.end = Turn::Failed{
        {"StepFailed", fmt::format("{} of {} tasks did not complete, first {}", closed - completed, closed, failed)}};
  }
  return turn;
}

void TaskLists::look() {
  for (const std::string& name_space : settings_.namespaces_with(std::string(kTaskListQueue))) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_ || !waiting_.try_emplace(name_space).second) continue;
    }
    claim(name_space);
  }
}

void TaskLists::stop() {
  std::map<std::string, std::shared_ptr<Waiting>> waiting;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting.swap(waiting_);
  }
  for (auto& [name_space, wait] : waiting) {
    if (wait) wait->cancel();
  }
}

void TaskLists::claim(const std::string& name_space) {
  ClaimCall call;
  call.name_space = name_space;
  call.queues = {std::string(kTaskListQueue)};
  call.tasks = false;
  call.workflows = true;
  call.limit = kTurns;
  call.worker = kTaskListType;
  call.wait = kWait;
  auto waiting = engine_.claim(std::move(call), [this, name_space](Answer<std::vector<Claimed>> answer) {
    auto shared = std::make_shared<Answer<std::vector<Claimed>>>(std::move(answer));
    timer_.soon([this, name_space, shared] { claimed(name_space, std::move(*shared)); });
  });
  std::lock_guard lock(mutex_);
  if (!stopping_) waiting_[name_space] = std::move(waiting);
}

void TaskLists::claimed(const std::string& name_space, Answer<std::vector<Claimed>> answer) {
  Duration pause{0};
  try {
    run_turns(name_space, std::move(answer).get());
  } catch (const std::exception& failure) {
    spdlog::warn("task lists: {}", failure.what());
    pause = kPauseAfterFailure;
  }
  timer_.after(pause, [this, name_space] {
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    claim(name_space);
  });
}

void TaskLists::run_turns(const std::string& name_space, const std::vector<Claimed>& claims) {
  std::vector<TurnRequest> turns;
  for (const auto& [run, events] : claims) {
    std::vector<Event> history;
    if (run.type == kTaskListType || run.type == kSignalType) {
      for (;;) {
        const auto page = engine_.history(name_space, run.id, history.empty() ? 0 : history.back().no, kHistoryPage);
        history.insert(history.end(), page.begin(), page.end());
        if (page.empty()) break;
      }
      turns.push_back(run.type == kSignalType ? event_signal_turn(run, history) : task_list_turn(run, history));
    } else {
      TurnRequest turn = turn_of(run, run.run.seen);
      turn.end =
          Turn::Failed{{"UnknownType", fmt::format("the queue {} is for the tasks of activities", kTaskListQueue)}};
      turns.push_back(std::move(turn));
    }
  }
  if (turns.empty()) return;
  await<std::vector<TurnOutcome>>([&](auto reply) { engine_.commit_turns(std::move(turns), std::move(reply)); });
}

}  // namespace hapax
