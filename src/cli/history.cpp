#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/execution_id.h"
#include "cli/find_execution.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/timeline.h"
#include "wire/event.h"

namespace hapax {

namespace {

struct HistoryFlags {
  TargetFlags target;
  std::string workflow_id;
  std::optional<std::string> run;
};

Execution find_run(const Target& target, const HistoryFlags& flags) {
  const std::optional<Execution> run = flags.run ? target.engine->find(target.name_space, require_id(*flags.run))
                                                 : find_execution(*target.engine, target.name_space, flags.workflow_id);
  if (!run || run->kind != Kind::workflow) throw workflow_not_found(flags.run.value_or(flags.workflow_id));
  return *run;
}

void print_json(std::ostream& out, const Execution& run, const std::vector<Event>& events) {
  JsonWriter json;
  json.begin_object();
  json.key("workflow_id").string(run.idempotency_key.value_or(""));
  json.key("execution_id").string(run.id.to_string());
  json.key("status").string(to_string(run.status));
  json.key("events").begin_array();
  for (const Event& event : events) wire::write_event(json, event);
  json.end_array().key("next_after").null().end_object();
  out << json.text() << std::endl;
}

int history(const Program& program, const HistoryFlags& flags) {
  require_workflow_id("WORKFLOW_ID", flags.workflow_id);
  const Target target = flags.target.open(program);
  const Execution run = find_run(target, flags);
  const std::vector<Event> events = read_history(*target.engine, target.name_space, run.id);
  if (flags.target.json()) {
    print_json(program.out, run, events);
  } else {
    program.out << render_timeline(run, events, SystemClock().now(), Paint::of(program),
                                   program.terminal ? terminal_width() : std::nullopt)
                << std::flush;
  }
  return kOk;
}

}  // namespace

void add_history(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("history", "Show what a workflow did, step by step");
  auto flags = std::make_shared<HistoryFlags>();
  command->add_option("WORKFLOW_ID", flags->workflow_id, "The workflow's id")->required()->type_name("");
  command->add_option("--run", flags->run, "Of this run of it (default: the latest)")->type_name("ID");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return history(program, *flags); }; });
}

}  // namespace hapax
