#include "sdk/turns.h"

#include <algorithm>
#include <chrono>

#include "sdk/thrown.h"

namespace hapax::detail {

namespace {

constexpr std::int32_t kHistoryPage = 1000;
constexpr std::size_t kLeastStackBytes = 64 * 1024;

// When the turn began, by the store's clock.
Time time_of(const Execution& claimed) {
  return claimed.started_at.value_or(std::chrono::floor<Duration>(std::chrono::system_clock::now()));
}

}  // namespace

namespace {

std::map<std::string, StackPool> own_stacks(const std::map<std::string, DeclaredWorkflow>& declared) {
  std::map<std::string, StackPool> stacks;
  for (const auto& [type, workflow] : declared) {
    if (const auto bytes = workflow.options.stack_bytes) stacks.try_emplace(type, std::max(*bytes, kLeastStackBytes));
  }
  return stacks;
}

}  // namespace

Turns::Turns(AppState& app, std::size_t kept_runs, std::size_t stack_bytes)
    : app_(app),
      declared_(app.workflows()),
      stacks_(std::max(stack_bytes, kLeastStackBytes)),
      own_stacks_(own_stacks(declared_)),
      kept_(kept_runs) {}

const StackPool& Turns::stacks_of(const std::string& type) const {
  const auto own = own_stacks_.find(type);
  return own == own_stacks_.end() ? stacks_ : own->second;
}

TurnRequest::Command* OpenTurn::lone_step() {
  if (!run || request.commands.empty() || !std::holds_alternative<Turn::Suspended>(request.end)) return nullptr;
  TurnRequest::Command& last = request.commands.back();
  return last.event.kind == Event::Kind::task && run->waits_only_for(last.event.step) ? &last : nullptr;
}

OpenTurn Turns::open(const Execution& claimed, const std::vector<Event>& events) {
  OpenTurn turn;
  const auto workflow = declared_.find(claimed.type);
  if (workflow == declared_.end()) {
    turn.request.seen = claimed.run.seen;
    turn.request.end = Turn::Stuck{
        presentable_error("UnknownWorkflowType", "this worker has no workflow '" + claimed.type + "' declared")};
  } else {
    turn.run = continue_run(claimed, events);
    turn.is_first_try = turn.run || claimed.attempt == 1;
    if (!turn.run) turn.run = replay(workflow->second, claimed, events);
    turn.request = turn.run->advance(time_of(claimed));
  }
  turn.request.token = {claimed.id, claimed.attempt, *claimed.lease_secret};
  turn.request.name_space = app_.name_space();
  return turn;
}

TurnRequest Turns::go_on(OpenTurn& turn, const std::optional<std::string>& result, Time now) {
  TurnRequest done = std::move(turn.request);
  TurnRequest::Command& step = done.commands.back();
  step.within_turn->begun.completed = Report::Completed{result};
  turn.run->learn_completed(step.event.step, result);
  turn.request = turn.run->advance(now);
  turn.request.token = done.token;
  turn.request.name_space = done.name_space;
  ++events_;
  return done;
}

void Turns::keep(OpenTurn& turn) {
  if (std::holds_alternative<Turn::Suspended>(turn.request.end)) kept_.put({std::move(turn.run), turn.request.token});
}

TurnRequest Turns::run(const Execution& claimed, const std::vector<Event>& events) {
  OpenTurn turn = open(claimed, events);
  keep(turn);
  return std::move(turn.request);
}

std::optional<TurnRequest> Turns::follow(const RunningTask& task, const Report& report) {
  const auto* completed = std::get_if<Report::Completed>(&report.outcome);
  if (!completed || !task.execution.parent) return std::nullopt;
  if (task.cancel_requested || task.is_over()) return std::nullopt;  // another worker may have it
  KeptRun kept = kept_.take_if_waiting_only_for(*task.execution.parent, task.execution.step);
  if (!kept.run) return std::nullopt;
  kept.run->learn_completed(task.execution.step, completed->result);
  TurnRequest turn = kept.run->advance(task.now());
  if (std::holds_alternative<Turn::Stuck>(turn.end)) return std::nullopt;  // a replay reports it better
  turn.token = kept.last_turn;
  turn.name_space = app_.name_space();
  turn.step = report;
  ++continued_;
  ++followed_;
  ++events_;
  kept.last_turn = kept.last_turn.next();
  kept.is_certain = false;
  if (std::holds_alternative<Turn::Suspended>(turn.end)) kept_.put(std::move(kept));
  return turn;
}

std::unique_ptr<WorkflowRun> Turns::continue_run(const Execution& claimed, const std::vector<Event>& events) {
  KeptRun kept = kept_.take(claimed.id);
  std::unique_ptr<WorkflowRun>& run = kept.run;
  if (!run || !kept.is_certain || run->known() != claimed.run.seen || !run->learn(events)) return nullptr;
  ++continued_;
  events_ += std::ssize(events);
  return std::move(run);
}

std::unique_ptr<WorkflowRun> Turns::replay(const DeclaredWorkflow& workflow, const Execution& claimed,
                                           const std::vector<Event>& events) {
  auto run = std::make_unique<WorkflowRun>(app_, workflow.function, stacks_of(claimed.type), claimed);
  ++replayed_;
  const auto tell = [&](const std::vector<Event>& told) {
    run->learn(told);
    events_ += std::ssize(told);
  };
  if (claimed.run.seen == 0) {  // then the claim brought the whole history
    tell(events);
    return run;
  }
  const std::int64_t latest = std::max({claimed.run.events, claimed.run.seen, events.empty() ? 0 : events.back().no});
  while (run->known() < latest) {
    const auto page = app_.engine().history(app_.name_space(), claimed.id, run->known(), kHistoryPage);
    if (page.empty()) break;
    tell(page);
  }
  return run;
}

}  // namespace hapax::detail
