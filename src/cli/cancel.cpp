#include <CLI/CLI.hpp>

#include "cli/control.h"
#include "cli/find_execution.h"
#include "cli/submission_flags.h"
#include "core/canonical_json.h"

namespace hapax {

namespace {

// A text that looks like an execution's id is one, unless it is a workflow's id.
void set_target(ControlRequest& request, const std::string& text, const Target& target) {
  const auto id = ExecutionId::parse(text);
  const bool names_execution =
      id && (target.engine->find(target.name_space, *id) || !target.engine->find_workflow(target.name_space, text));
  if (names_execution) {
    request.target = *id;
  } else {
    require_workflow_id("ID", text);
    request.workflow_id = text;
  }
}

struct CancelFlags : ControlFlags {
  bool ask = false;
  std::optional<std::string> grace, reason;
};

int cancel(const Program& program, const CancelFlags& flags) {
  ControlRequest request = control_request(flags, ControlRequest::Action::cancel);
  request.asks = flags.ask;
  if (!flags.ask && (flags.grace || flags.reason)) {
    throw CommandError(kUsage, "--grace and --reason go with --ask");
  }
  if (flags.grace) {
    request.grace = parse_duration(*flags.grace);
    if (!request.grace) throw CommandError(kUsage, "--grace must be a duration as 5m");
  }
  if (flags.reason) {
    require_utf8("--reason", *flags.reason);
    append_json_string(request.payload.emplace(), *flags.reason);
  }
  const Target target = flags.target.open(program);
  set_target(request, flags.id, target);
  return run_control(program, flags, target, std::move(request));
}

}  // namespace

void add_cancel(CLI::App& app, const Program& program, Action& action) {
  auto* command =
      app.add_subcommand("cancel",
                         "Cancel a task: a pending one at once, a running one at its next heartbeat; or a workflow "
                         "with its open steps");
  auto flags = std::make_shared<CancelFlags>();
  command->add_option("ID", flags->id, "The task's id, or the workflow's")->required()->type_name("");
  command->add_flag("--ask", flags->ask, "A workflow: let its code compensate, instead of closing it now");
  command->add_option("--grace", flags->grace, "With --ask: close it after this time in any case")
      ->type_name("DURATION");
  command->add_option("--reason", flags->reason, "With --ask: what its code is told")->type_name("TEXT");
  flags->add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return cancel(program, *flags); }; });
}

}  // namespace hapax
