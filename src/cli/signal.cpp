#include <CLI/CLI.hpp>

#include "cli/control.h"
#include "cli/find_execution.h"
#include "cli/submission_flags.h"
#include "core/canonical_json.h"

namespace hapax {

namespace {

struct SignalFlags : ControlFlags {
  std::string name, payload;
};

int send_signal(const Program& program, const SignalFlags& flags) {
  ControlRequest request = control_request(flags, ControlRequest::Action::signal);
  require_workflow_id("WORKFLOW_ID", flags.id);
  require_workflow_id("NAME", flags.name);
  request.workflow_id = flags.id;
  request.signal = flags.name;
  if (!flags.payload.empty()) request.payload = canonical_json(read_json_argument("PAYLOAD", flags.payload, program));
  return run_control(program, flags, flags.target.open(program), std::move(request));
}

}  // namespace

void add_signal(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("signal", "Send a signal to a workflow, once per request key");
  auto flags = std::make_shared<SignalFlags>();
  command->add_option("WORKFLOW_ID", flags->id, "The workflow's id")->required()->type_name("");
  command->add_option("NAME", flags->name, "The signal's name")->required()->type_name("");
  command->add_option("PAYLOAD", flags->payload, "Its payload, as JSON; - reads it from standard input")->type_name("");
  flags->add(*command);
  command->callback(
      [&program, &action, flags] { action = [&program, flags] { return send_signal(program, *flags); }; });
}

}  // namespace hapax
