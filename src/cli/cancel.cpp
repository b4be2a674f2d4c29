#include <CLI/CLI.hpp>

#include "cli/control.h"
#include "cli/find_execution.h"

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

int cancel(const Program& program, const ControlFlags& flags) {
  ControlRequest request = control_request(flags, ControlRequest::Action::cancel);
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
  auto flags = std::make_shared<ControlFlags>();
  command->add_option("ID", flags->id, "The task's id, or the workflow's")->required()->type_name("");
  flags->add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return cancel(program, *flags); }; });
}

}  // namespace hapax
