#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/control.h"
#include "cli/find_execution.h"
#include "cli/submission_flags.h"
#include "core/canonical_json.h"
#include "core/json_writer.h"
#include "engine/check_request.h"
#include "wire/error_code.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct UpdateFlags : ControlFlags {
  std::string name, payload, wait = "30s";
};

std::string describe(const UpdateRequest& request, const UpdateOutcome& outcome) {
  switch (outcome.state) {
    case UpdateOutcome::State::answered: return outcome.result.value_or("");
    case UpdateOutcome::State::pending:
      return fmt::format("{} has not answered yet: ask again with --request-key {}", request.workflow_id,
                         request.request_key);
    case UpdateOutcome::State::refused:
      return fmt::format("{} refused it: {}: {}", request.workflow_id, outcome.error->type, outcome.error->message);
    case UpdateOutcome::State::closed: return wire::closed_before_answer(request.workflow_id);
  }
  return {};
}

int show(const Program& program, const UpdateFlags& flags, const UpdateRequest& request, const UpdateOutcome& outcome) {
  const ControlOutcome& delivery = outcome.delivery;
  const bool is_delivered = delivery.kind == ControlOutcome::Kind::done;
  const bool is_good = is_delivered && (outcome.state == UpdateOutcome::State::answered ||
                                        outcome.state == UpdateOutcome::State::pending);
  if (flags.target.json()) {
    JsonWriter json;
    wire::write_update_outcome(json, request, outcome);
    program.out << json.text() << std::endl;
  } else if (delivery.kind == ControlOutcome::Kind::not_found) {
    throw workflow_not_found(flags.id);
  } else if (!is_delivered) {
    program.err << "hapax: " << wire::describe(delivery.kind, flags.id, Kind::workflow, delivery.steps) << "\n";
  } else if (outcome.state == UpdateOutcome::State::answered) {
    program.out << describe(request, outcome) << std::endl;
  } else {
    program.err << "hapax: " << describe(request, outcome) << "\n";
  }
  if (delivery.kind == ControlOutcome::Kind::not_found) return kNotFound;
  if (!is_good) return kRefused;
  return outcome.state == UpdateOutcome::State::answered ? kOk : kUnavailable;
}

int send_update(const Program& program, const UpdateFlags& flags) {
  require_workflow_id("WORKFLOW_ID", flags.id);
  require_workflow_id("NAME", flags.name);
  const auto wait = parse_duration(flags.wait);
  if (!wait || *wait > kMaxWait) throw CommandError(kUsage, "--wait must be a duration of up to 60s, such as \"30s\"");
  const Target target = flags.target.open(program);
  UpdateRequest request;
  request.name_space = target.name_space;
  request.workflow_id = flags.id;
  request.name = flags.name;
  request.request_key = control_request(flags, ControlRequest::Action::signal).request_key;
  if (!flags.payload.empty()) request.payload = canonical_json(read_json_argument("PAYLOAD", flags.payload, program));
  // Printed before: if the answer is lost, the same command with this key asks for the same answer.
  if (flags.request_key.empty()) program.err << "request key " << request.request_key << std::endl;
  const auto outcome =
      await<UpdateOutcome>([&](auto reply) { target.engine->update(request, *wait, std::move(reply)); });
  return show(program, flags, request, outcome);
}

}  // namespace

void add_update(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("update", "Ask a workflow, once per request key, and print its answer");
  auto flags = std::make_shared<UpdateFlags>();
  command->add_option("WORKFLOW_ID", flags->id, "The workflow's id")->required()->type_name("");
  command->add_option("NAME", flags->name, "The update's name")->required()->type_name("");
  command->add_option("PAYLOAD", flags->payload, "What to ask, as JSON; - reads it from standard input")->type_name("");
  command->add_option("--wait", flags->wait, "Wait for the answer, at most this long (default: 30s)")
      ->type_name("DURATION");
  flags->add(*command);
  command->callback(
      [&program, &action, flags] { action = [&program, flags] { return send_update(program, *flags); }; });
}

}  // namespace hapax
