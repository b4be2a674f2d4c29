#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/control.h"
#include "cli/find_execution.h"

namespace hapax {

namespace {

struct ForkFlags : ControlFlags {
  std::int32_t from_step = 0;
  std::string new_id;
};

int fork_workflow(const Program& program, const ForkFlags& flags) {
  if (flags.from_step < 0) throw CommandError(kUsage, "--from-step must be at least 1, or 0 for the start");
  ControlRequest request = control_request(flags, ControlRequest::Action::fork);
  require_workflow_id("WORKFLOW_ID", flags.id);
  if (!flags.new_id.empty()) require_workflow_id("--workflow-id", flags.new_id);
  request.workflow_id = flags.id;
  request.from_step = std::max(flags.from_step, 1);
  request.fork_workflow_id = flags.new_id;
  return run_control(program, flags, flags.target.open(program), std::move(request));
}

}  // namespace

void add_fork(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand(
      "fork", "Start a new workflow from a step of an old one: earlier steps are copied, the rest runs again");
  auto flags = std::make_shared<ForkFlags>();
  command->add_option("WORKFLOW_ID", flags->id, "The old workflow's id")->required()->type_name("");
  command
      ->add_option("--from-step", flags->from_step,
                   "The first step to run again; hapax history shows them (default: from the start)")
      ->type_name("N");
  command
      ->add_option("--workflow-id", flags->new_id,
                   "The new workflow's id (default: made from the request key, printed)")
      ->type_name("WORKFLOW_ID");
  flags->add(*command);
  command->callback(
      [&program, &action, flags] { action = [&program, flags] { return fork_workflow(program, *flags); }; });
}

}  // namespace hapax
