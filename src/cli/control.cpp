#include "cli/control.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/execution_id.h"
#include "cli/find_execution.h"
#include "cli/submission_flags.h"
#include "core/hex.h"
#include "core/name.h"
#include "core/workflow.h"
#include "wire/error_code.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

std::string new_request_key() {
  std::uint8_t bytes[8];
  fill_random(bytes, sizeof bytes);
  std::string key = "cli-";
  for (const std::uint8_t byte : bytes) append_hex(key, byte);
  return key;
}

std::string describe_change(const ControlRequest& request, const std::string& id, const ControlOutcome& outcome) {
  using Action = ControlRequest::Action;
  if (request.action == Action::signal) return fmt::format("sent the signal {} to {}", request.signal, id);
  if (request.action == Action::fork) {
    const std::string made = fork_workflow_id(id, request.request_key);
    return fmt::format("forked {} from step {} as {}", id, request.from_step,
                       request.fork_workflow_id.empty() ? made : request.fork_workflow_id);
  }
  if (!outcome.changed) return fmt::format("nothing to do: {} is {}", id, to_string(outcome.status));
  if (request.action == Action::cancel && outcome.status == Status::running) {
    return fmt::format("asked the worker of {} to stop; it runs until it stops or its grace has passed", id);
  }
  return fmt::format("{} is {}", id, to_string(outcome.status));
}

int exit_code_of(ControlOutcome::Kind kind) {
  switch (kind) {
    case ControlOutcome::Kind::done: return kOk;
    case ControlOutcome::Kind::not_found: return kNotFound;
    case ControlOutcome::Kind::no_such_step: return kUsage;
    default: return kRefused;
  }
}

void print_json(std::ostream& out, const ControlRequest& request, const std::string& id,
                const ControlOutcome& outcome) {
  JsonWriter json;
  if (request.workflow_id) {
    wire::write_workflow_control(json, request, outcome);
  } else {
    wire::write_control(json, id, outcome);
  }
  out << json.text() << std::endl;
}

}  // namespace

void ControlFlags::add(CLI::App& command) {
  command
      .add_option("--request-key", request_key,
                  "The idempotency key of this operation, which runs once per key (default: a new one, printed)")
      ->type_name("KEY");
  target.add(command);
}

ControlRequest control_request(const ControlFlags& flags, ControlRequest::Action action) {
  ControlRequest request;
  request.action = action;
  request.request_key = flags.request_key.empty() ? new_request_key() : flags.request_key;
  require_utf8("--request-key", request.request_key);
  if (const auto wrong = check_request_key(request.request_key)) throw CommandError(kUsage, "--request-key " + *wrong);
  return request;
}

int run_control(const Program& program, const ControlFlags& flags, const Target& target, ControlRequest request) {
  request.name_space = target.name_space;
  // Printed before the operation: if the answer is lost, the same command with this key is the same operation.
  if (flags.request_key.empty()) program.err << "request key " << request.request_key << std::endl;
  const auto outcome = await<ControlOutcome>([&](auto reply) { target.engine->control(request, std::move(reply)); });
  if (flags.target.json()) {
    print_json(program.out, request, flags.id, outcome);
  } else if (outcome.kind == ControlOutcome::Kind::done) {
    program.out << describe_change(request, flags.id, outcome)
                << (outcome.replayed ? " (done before under this request key)" : "") << std::endl;
  } else if (outcome.kind == ControlOutcome::Kind::not_found) {
    throw request.workflow_id ? workflow_not_found(flags.id) : task_not_found(flags.id);
  } else {
    const Kind of = request.workflow_id ? Kind::workflow : Kind::task;
    std::string text = wire::describe(outcome.kind, flags.id, of, outcome.steps);
    if (outcome.other) text += fmt::format(" That is {}.", outcome.other->to_string());
    program.err << "hapax: " << text << "\n";
  }
  return exit_code_of(outcome.kind);
}

}  // namespace hapax
