// Turns and the parameters of control operations, as a client sends them.
#include "core/canonical_json.h"
#include "wire/write_request.h"

namespace hapax::wire {

namespace {

void write_command(JsonWriter& out, const TurnRequest::Command& command) {
  const Event& event = command.event;
  out.begin_object();
  out.key("step").integer(event.step).key("kind").string(to_string(event.kind));
  if (command.start) {
    out.key("start");
    write_submit(out, *command.start);
  } else if (!event.name.empty()) {
    out.key("name").string(event.name);
  }
  if (event.until) out.key("until").string(format_time(*event.until));
  if (event.value) out.key("value").raw(*event.value);
  if (event.error) {
    out.key("error").begin_object();
    out.key("type").string(event.error->type).key("message").string(event.error->message).end_object();
  }
  out.end_object();
}

// How a turn ends, as the members of its "end".
struct EndWriter {
  JsonWriter& out;

  void error(const AttemptError& error) {
    out.key("error").begin_object();
    out.key("type").string(error.type).key("message").string(error.message).end_object();
  }
  void operator()(const Turn::Suspended&) { out.key("kind").string("suspended"); }
  // Only if a step was begun within the turn, which the remote engine does not allow.
  void operator()(const Turn::Unfinished&) { out.key("kind").string("suspended"); }
  void operator()(const Turn::Completed& end) {
    out.key("kind").string("completed");
    if (end.result) out.key("result").raw(*end.result);
  }
  void operator()(const Turn::Failed& end) {
    out.key("kind").string("failed");
    error(end.error);
  }
  void operator()(const Turn::Stuck& end) {
    out.key("kind").string("stuck");
    error(end.error);
  }
  void operator()(const TurnRequest::Continued& end) {
    out.key("kind").string("continued").key("input").raw(canonical_json(end.input));
  }
};

}  // namespace

namespace {

void write_turn(JsonWriter& out, const TurnRequest& turn) {
  out.begin_object();
  out.key("lease").string(turn.token.to_string());
  if (turn.step) {
    out.key("step");
    write_report(out, *turn.step);
  }
  out.key("seen").integer(turn.seen);
  out.key("commands").begin_array();
  for (const TurnRequest::Command& command : turn.commands) write_command(out, command);
  out.end_array();
  out.key("end").begin_object();
  std::visit(EndWriter{out}, turn.end);
  out.end_object().end_object();
}

}  // namespace

std::string write_turns(const std::vector<TurnRequest>& turns) {
  JsonWriter out;
  out.begin_object().key("turns").begin_array();
  for (const TurnRequest& turn : turns) write_turn(out, turn);
  return out.end_array().end_object().take();
}

std::string write_control_request(const ControlRequest& request) {
  JsonWriter out;
  out.begin_object();
  if (request.action == ControlRequest::Action::fork) {
    out.key("from_step").integer(request.from_step);
    if (!request.fork_workflow_id.empty()) out.key("workflow_id").string(request.fork_workflow_id);
  }
  if (request.action == ControlRequest::Action::signal && request.payload) out.key("payload").raw(*request.payload);
  return out.end_object().take();
}

}  // namespace hapax::wire
