#include "cli/control.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/execution_id.h"
#include "cli/paint.h"
#include "cli/submission_flags.h"
#include "cli/target.h"
#include "core/hex.h"
#include "core/name.h"
#include "wire/error_code.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct ControlFlags {
  TargetFlags target;
  std::string name, id, request_key;
  ControlRequest::Action what = ControlRequest::Action::cancel;
};

std::string new_request_key() {
  std::uint8_t bytes[8];
  fill_random(bytes, sizeof bytes);
  std::string key = "cli-";
  for (const std::uint8_t byte : bytes) append_hex(key, byte);
  return key;
}

std::string describe(const ControlFlags& flags, const ControlOutcome& outcome) {
  std::string text;
  const bool cancel = flags.what == ControlRequest::Action::cancel;
  if (!outcome.changed) {
    text = fmt::format("nothing to do: {} is {}", flags.id, to_string(outcome.status));
  } else if (cancel && outcome.status == Status::running) {
    text = fmt::format("asked the worker of {} to stop; it is running until it does, or its grace is over", flags.id);
  } else {
    text = fmt::format("{} is {}", flags.id, to_string(outcome.status));
  }
  if (outcome.replayed) text += " (done before under this request key)";
  return text;
}

int exit_code_of(ControlOutcome::Kind kind) {
  if (kind == ControlOutcome::Kind::done) return kOk;
  return kind == ControlOutcome::Kind::not_found ? kNotFound : kRefused;
}

int control(const Program& program, const ControlFlags& flags) {
  ControlRequest request;
  request.target = require_id(flags.id);
  request.action = flags.what;
  request.request_key = flags.request_key.empty() ? new_request_key() : flags.request_key;
  require_utf8("--request-key", request.request_key);
  if (const auto wrong = check_request_key(request.request_key)) throw CommandError(kUsage, "--request-key " + *wrong);
  const Target target = flags.target.open(program);
  request.name_space = target.name_space;
  const bool json = flags.target.json();
  // Told before it is done: if the answer is lost, the same command with this key is the same operation.
  if (flags.request_key.empty()) program.err << "request key " << request.request_key << std::endl;
  const auto outcome =
      await<ControlOutcome>([&](auto reply) { target.engine->control(std::move(request), std::move(reply)); });
  if (json) {
    JsonWriter out;
    wire::write_control(out, flags.id, outcome);
    program.out << out.text() << std::endl;
  } else if (outcome.kind == ControlOutcome::Kind::done) {
    program.out << describe(flags, outcome) << std::endl;
  } else if (outcome.kind == ControlOutcome::Kind::not_found) {
    throw task_not_found(flags.id);
  } else {
    std::string text = wire::describe(outcome.kind, flags.id);
    if (outcome.other) text += fmt::format(" That is {}.", outcome.other->to_string());
    program.err << "hapax: " << text << "\n";
  }
  return exit_code_of(outcome.kind);
}

}  // namespace

void add_control(CLI::App& app, const Program& program, Action& action, const std::string& name,
                 const std::string& description, ControlRequest::Action what) {
  auto* command = app.add_subcommand(name, description);
  auto flags = std::make_shared<ControlFlags>();
  flags->name = name;
  flags->what = what;
  command->add_option("ID", flags->id, "The task's id")->required()->type_name("");
  command
      ->add_option(
          "--request-key", flags->request_key,
          "The idempotency key of this operation: with the same one it is done once (default: a new one, printed)")
      ->type_name("KEY");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return control(program, *flags); }; });
}

}  // namespace hapax
