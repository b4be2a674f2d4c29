// The replay of an exported history, for tests before a deploy.
#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "hapax/app.h"
#include "hapax/testing.h"
#include "sdk/app_state.h"
#include "sdk/turns.h"
#include "wire/event.h"

namespace hapax::detail {

namespace {

struct Exported {
  Execution run;
  std::vector<Event> events;
};

const Json& member(const Json& document, std::string_view name, Json::Kind kind) {
  const Json* found = document.find(name);
  if (!found || !found->is(kind)) {
    throw Error("InvalidRequest",
                fmt::format("this is no exported history: it has no \"{}\"; write one with `hapax history WORKFLOW_ID "
                            "--export`",
                            name));
  }
  return *found;
}

Exported read_exported(std::string_view text) {
  const Json document = parse_document(std::string(text));
  Exported exported;
  exported.run.kind = Kind::workflow;
  exported.run.type = member(document, "type", Json::Kind::string).text;
  exported.run.idempotency_key = member(document, "workflow_id", Json::Kind::string).text;
  const auto id = ExecutionId::parse(member(document, "execution_id", Json::Kind::string).text);
  if (!id) throw Error("InvalidRequest", "this is no exported history: its execution_id is no id");
  exported.run.id = *id;
  exported.run.input = member(document, "input", Json::Kind::string).text;
  exported.events = translating([&] {
    std::vector<Event> events;
    for (const Json& event : member(document, "events", Json::Kind::array).items) {
      events.push_back(wire::read_event(event));
    }
    return events;
  });
  return exported;
}

[[noreturn]] void does_not_fit(const Execution& run, const std::string& message) {
  throw Error(std::string(kNonDeterminism),
              fmt::format("workflow '{}' ({}): {}", *run.idempotency_key, run.type, message));
}

// What the code asked for beyond the history of a run that has ended.
void check_end(const Execution& run, const TurnRequest& turn) {
  if (turn.commands.empty()) return;
  const Event& first = turn.commands.front().event;
  does_not_fit(run, fmt::format("step {}: expected the end of the workflow, found {} '{}'", first.step,
                                to_string(first.kind), first.name));
}

}  // namespace

void replay(const Declared& workflow, std::string_view exported) {
  App app = workflow.app();
  AppState& state = app.live();
  const Exported history = read_exported(exported);
  const auto declared = state.workflows();
  const auto found = declared.find(workflow.name());
  if (found == declared.end()) {
    throw Error("UnknownWorkflowType", "there is no workflow '" + workflow.name() + "' declared");
  }
  if (history.run.type != workflow.name()) {
    throw Error("InvalidRequest",
                fmt::format("this history is of a workflow '{}', not '{}'", history.run.type, workflow.name()));
  }
  const StackPool stacks(kReplayStackBytes);
  WorkflowRun run(state, found->second.function, stacks, history.run);
  run.learn(history.events);
  const Time began = history.events.empty() ? Time() : history.events.back().at;
  const TurnRequest turn = run.advance(began);
  if (const auto* stuck = std::get_if<Turn::Stuck>(&turn.end)) does_not_fit(history.run, stuck->error.message);
  const bool has_ended = std::any_of(history.events.begin(), history.events.end(), [](const Event& event) {
    return event.kind == Event::Kind::completed || event.kind == Event::Kind::failed;
  });
  if (has_ended) check_end(history.run, turn);
}

}  // namespace hapax::detail
