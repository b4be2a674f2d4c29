#include "engine/event_signal.h"

#include <fmt/format.h>

#include "core/canonical_json.h"
#include "core/json_writer.h"
#include "core/signal_target.h"

namespace hapax {

namespace {

Turn::Failed not_sent(std::string type, std::string why) {
  return Turn::Failed{AttemptError{std::move(type), std::move(why)}};
}

// The one command, or why there is none.
std::variant<TurnRequest::Command, Turn::Failed> signal_of(const Execution& run) {
  const Json input = parse_json(run.input);
  const Json *to = input.at("/signal/workflow_id"), *name = input.at("/signal/name"), *event = input.find("event");
  if (!to || !to->is(Json::Kind::string) || !name || !name->is(Json::Kind::string)) {
    return not_sent("InvalidInput", "a workflow of this type is started by activities only");
  }
  if (!event) return not_sent("InvalidInput", "there is no event to send: it was triggered by hand");
  const auto target = signal_target(to->text, *event);
  if (const auto* none = std::get_if<NoSignalTarget>(&target)) return not_sent("NoSignalTarget", none->why);
  TurnRequest::Command command;
  command.event.kind = Event::Kind::send_signal;
  command.event.step = 1;
  command.event.name = name->text;
  command.event.key = std::get<std::string>(target);
  const Json* data = event->find("data");
  command.event.value = data ? canonical_json(*data) : "null";
  return command;
}

decltype(TurnRequest::end) end_of(const Event& sent, const Event& outcome) {
  if (outcome.status == Status::completed) {
    JsonWriter result;
    result.begin_object().key("signal").string(sent.name).key("workflow_id").string(sent.key.value_or(""));
    return Turn::Completed{result.end_object().take()};
  }
  // Ends as a workflow's code would, so that resuming sends it again.
  const AttemptError error = outcome.error.value_or(AttemptError{});
  return not_sent("StepFailed", fmt::format("{}: {}", error.type, error.message));
}

}  // namespace

TurnRequest event_signal_turn(const Execution& run, const std::vector<Event>& history) {
  TurnRequest turn;
  turn.token = {run.id, run.attempt, run.lease_secret.value()};
  turn.name_space = run.name_space;
  turn.seen = history.empty() ? 0 : history.back().no;
  const Event *sent = nullptr, *outcome = nullptr;
  for (const Event& event : history) {
    if (event.kind == Event::Kind::send_signal) sent = &event, outcome = nullptr;
    if (is_outcome(event)) outcome = &event;
  }
  if (sent && outcome) {
    turn.end = end_of(*sent, *outcome);
  } else if (sent) {
    turn.end = Turn::Suspended{};
  } else {
    auto signal = signal_of(run);
    if (auto* failed = std::get_if<Turn::Failed>(&signal)) {
      turn.end = std::move(*failed);
    } else {
      turn.commands.push_back(std::get<TurnRequest::Command>(std::move(signal)));
      turn.end = Turn::Suspended{};
    }
  }
  return turn;
}

}  // namespace hapax
