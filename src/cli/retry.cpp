#include <CLI/CLI.hpp>

#include "cli/control.h"
#include "cli/execution_id.h"

namespace hapax {

namespace {

int retry(const Program& program, const ControlFlags& flags) {
  ControlRequest request = control_request(flags, ControlRequest::Action::retry);
  request.target = require_id(flags.id);
  return run_control(program, flags, flags.target.open(program), std::move(request));
}

}  // namespace

void add_retry(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("retry", "Give a failed, cancelled or timed-out task new attempts");
  auto flags = std::make_shared<ControlFlags>();
  command->add_option("ID", flags->id, "The task's id")->required()->type_name("");
  flags->add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return retry(program, *flags); }; });
}

}  // namespace hapax
