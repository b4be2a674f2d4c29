#include "protocol/script.h"

#include <stdexcept>

#include "core/canonical_json.h"
#include "core/json_writer.h"
#include "core/update.h"
#include "hapax/app.h"
#include "sdk/workflow_run.h"

namespace hapax::protocol {

namespace {

// Runs statements, and keeps what the code got from each.
class Interpreter {
 public:
  explicit Interpreter(Context& context) : context_(context) {}

  void run(const Json& code) {
    for (const Json& statement : code.items) step(statement);
  }

  std::string trace() {
    JsonWriter out;
    out.begin_array();
    for (const std::string& got : got_) out.raw(got);
    return out.end_array().take();
  }

 private:
  static int number(const Json& statement, const char* name) {
    return static_cast<int>(statement.find(name)->as_int().value());
  }

  void got(const std::string& json) { got_.push_back(json); }

  std::vector<Future<int>> start(const Json& types) {
    std::vector<Future<int>> futures;
    for (const Json& type : types.items) futures.push_back(context_.start<int>(type.text, 0));
    return futures;
  }

  void wait_signal(const Json& statement) {
    const std::string& name = statement.find("name")->text;
    if (!statement.find("ms")) return got(std::to_string(context_.wait_signal<int>(name)));
    const auto value = context_.wait_signal<int>(name, Milliseconds(number(statement, "ms")));
    got(value ? std::to_string(*value) : "null");
  }

  void try_or_catch(const Json& statement) {
    try {
      run(*statement.find("do"));
    } catch (const StepFailed&) {
      if (!statement.find("catch")) throw;
      run(*statement.find("catch"));
    } catch (const CancelRequested& cancel) {
      if (!statement.find("cancelled")) throw;
      got(cancel.reason_json());
      run(*statement.find("cancelled"));
    }
  }

  // Answers each update with its question, after the statements of `do`.
  void on(const Json& statement) {
    context_.on(statement.find("name")->text, [this, code = *statement.find("do")](int question) {
      got(std::to_string(question));
      run(code);
      return question;
    });
  }

  void step(const Json& statement) {
    const std::string& op = statement.find("op")->text;
    const auto text = [&](const char* name) { return statement.find(name)->text; };
    if (op == "run") return got(std::to_string(context_.run<int>(text("type"), number(statement, "input"))));
    if (op == "child") return got(std::to_string(context_.run_workflow<int>(text("type"), number(statement, "input"))));
    if (op == "sleep") return context_.sleep(Milliseconds(number(statement, "ms")));
    if (op == "wait_signal") return wait_signal(statement);
    if (op == "on") return on(statement);
    if (op == "try") return try_or_catch(statement);
    if (op == "version") return got(std::to_string(context_.version(text("name"), number(statement, "current"))));
    if (op == "side_effect") {
      return got(std::to_string(context_.side_effect(text("name"), [&] { return number(statement, "value"); })));
    }
    if (op == "all") {
      for (const int each : context_.all(start(*statement.find("types")))) got(std::to_string(each));
      return;
    }
    if (op == "any") return got(std::to_string(context_.any(start(*statement.find("types")))));
    if (op == "continue") return context_.continue_as_new(number(statement, "input"));
    if (op == "fail") throw std::runtime_error(text("message"));
    throw std::logic_error("no such statement: " + op);
  }

  Context& context_;
  std::vector<std::string> got_;
};

// Of the refusal of an update only the message is compared.
std::string comparable_value(const Event& event) {
  const Json value = parse_json(*event.value);
  const Json* error = is_update_answer(event.name) ? value.find("error") : nullptr;
  if (!error) return *event.value;
  JsonWriter out;
  out.begin_object().key("error").begin_object().key("message").string(error->find("message")->text);
  return out.end_object().end_object().take();
}

void write_command(JsonWriter& out, const TurnRequest::Command& command) {
  const Event& event = command.event;
  out.begin_object().key("step").integer(event.step).key("kind").string(to_string(event.kind));
  if (command.start) {
    out.key("type").string(command.start->type).key("input").raw(canonical_json(command.start->input));
  } else if (!event.name.empty()) {
    out.key("name").string(event.name);
  }
  if (event.until) out.key("until").string(format_time(*event.until));
  if (event.value) out.key("value").raw(comparable_value(event));
  out.end_object();
}

struct EndWriter {
  JsonWriter& out;

  void operator()(const Turn::Suspended&) { out.key("kind").string("suspended"); }
  void operator()(const Turn::Unfinished&) { throw std::logic_error("no script leaves a turn unfinished"); }
  void operator()(const Turn::Completed& end) {
    out.key("kind").string("completed").key("result").raw(end.result.value_or("null"));
  }
  // The name of an exception's class is the language's own; that a step's failure or a cancel escaped is not.
  void operator()(const Turn::Failed& end) {
    out.key("kind").string("failed");
    if (end.error.type == "StepFailed" || end.error.type == kCancelRequested) out.key("type").string(end.error.type);
  }
  // The message begins with the step.
  void operator()(const Turn::Stuck& end) {
    out.key("kind").string("stuck").key("type").string(end.error.type);
    out.key("at").string(end.error.message.substr(0, end.error.message.find(':')));
  }
  void operator()(const TurnRequest::Continued& end) {
    out.key("kind").string("continued").key("input").raw(canonical_json(end.input));
  }
};

}  // namespace

TurnRequest run_script(const Json& code, const std::vector<Event>& history) {
  const detail::Declarations declared;
  const detail::StackPool stacks(std::size_t{256} * 1024);
  const detail::WorkflowFunction function = [&](Context& context, const std::string&) {
    Interpreter interpreter(context);
    interpreter.run(code);
    return interpreter.trace();
  };
  Execution execution;
  execution.id = *ExecutionId::parse("019bf2d4-0000-7000-8000-000000000001");
  execution.idempotency_key = "script";
  execution.input = "null";
  detail::WorkflowRun run(declared, function, stacks, execution);
  run.learn(history);
  return run.advance(kNow);
}

std::string describe(const TurnRequest& turn) {
  JsonWriter out;
  out.begin_object().key("seen").integer(turn.seen).key("commands").begin_array();
  for (const TurnRequest::Command& command : turn.commands) write_command(out, command);
  out.end_array().key("end").begin_object();
  std::visit(EndWriter{out}, turn.end);
  return out.end_object().end_object().take();
}

}  // namespace hapax::protocol
