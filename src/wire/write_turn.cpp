// Turns and the parameters of control operations, as a client sends them.
#include "core/canonical_json.h"
#include "core/workflow.h"
#include "wire/event.h"
#include "wire/write_request.h"

namespace hapax::wire {

namespace {

void write_command(JsonWriter& out, const TurnRequest::Command& command, const ExecutionId& run) {
  const Event& event = command.event;
  out.begin_object();
  out.key("step").integer(event.step).key("kind").string(to_string(event.kind));
  if (command.start) {
    out.key("start");
    write_submit(out, *command.start);
  } else if (!event.name.empty()) {
    out.key("name").string(event.name);
  }
  if (event.kind == Event::Kind::send_signal) out.key("workflow_id").string(event.key.value_or(""));
  if (command.within_turn) {
    const Turn::Begun& begun = command.within_turn->begun;
    out.key("begun").begin_object();
    const LeaseToken token{step_id(run, event.name, event.step), 1, begun.secret};
    out.key("lease").string(token.to_string()).key("lease_for").string(format_duration(begun.lease));
    out.key("worker").string(begun.worker);
    if (begun.completed) {
      out.key("completed").begin_object();
      if (begun.completed->result) out.key("result").raw(*begun.completed->result);
      out.end_object();
    }
    out.end_object();
  }
  if (event.until) out.key("until").string(format_time(*event.until));
  if (event.value) out.key("value").raw(*event.value);
  if (event.error) {
    out.key("error");
    write_error(out, *event.error);
  }
  out.end_object();
}

// How a turn ends, as the members of its "end".
struct EndWriter {
  JsonWriter& out;

  void error(const AttemptError& error) {
    out.key("error");
    write_error(out, error);
  }
  void operator()(const Turn::Suspended&) { out.key("kind").string("suspended"); }
  void operator()(const Turn::Unfinished&) { out.key("kind").string("unfinished"); }
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
  for (const TurnRequest::Command& command : turn.commands) write_command(out, command, turn.token.execution);
  out.end_array();
  out.key("end").begin_object();
  std::visit(EndWriter{out}, turn.end);
  out.end_object().end_object();
}

}  // namespace

std::string write_turn(const TurnRequest& turn) {
  JsonWriter out;
  write_turn(out, turn);
  return out.take();
}

std::string write_control_request(const ControlRequest& request) {
  JsonWriter out;
  out.begin_object();
  if (request.action == ControlRequest::Action::fork) {
    out.key("from_step").integer(request.from_step);
    if (!request.fork_workflow_id.empty()) out.key("workflow_id").string(request.fork_workflow_id);
  }
  if (request.action == ControlRequest::Action::cancel && request.asks) {
    out.key("mode").string("request");
    if (request.grace) out.key("grace").string(format_duration(*request.grace));
    if (request.payload) out.key("reason").raw(*request.payload);
  }
  if (request.action == ControlRequest::Action::signal && request.payload) out.key("payload").raw(*request.payload);
  return out.end_object().take();
}

}  // namespace hapax::wire
