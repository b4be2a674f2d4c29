#include <CLI/CLI.hpp>

#include "cli/control.h"
#include "cli/find_execution.h"

namespace hapax {

namespace {

int resume(const Program& program, const ControlFlags& flags) {
  ControlRequest request = control_request(flags, ControlRequest::Action::resume);
  require_workflow_id("WORKFLOW_ID", flags.id);
  request.workflow_id = flags.id;
  return run_control(program, flags, flags.target.open(program), std::move(request));
}

}  // namespace

void add_resume(CLI::App& app, const Program& program, Action& action) {
  auto* command =
      app.add_subcommand("resume", "Continue a failed, cancelled or timed-out workflow from its last completed step");
  auto flags = std::make_shared<ControlFlags>();
  command->add_option("WORKFLOW_ID", flags->id, "The workflow's id")->required()->type_name("");
  flags->add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return resume(program, *flags); }; });
}

}  // namespace hapax
