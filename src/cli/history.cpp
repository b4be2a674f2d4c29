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
  bool to_export = false;
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

// For hapax::testing::replay(). The input stands there as text, byte for byte as the code got it.
void print_export(std::ostream& out, const Execution& run, const std::vector<Event>& events) {
  JsonWriter json;
  json.begin_object();
  json.key("workflow_id").string(run.idempotency_key.value_or(""));
  json.key("execution_id").string(run.id.to_string());
  json.key("type").string(run.type);
  json.key("status").string(to_string(run.status));
  json.key("input").string(run.input);
  json.key("created_at").string(format_time(run.created_at));
  json.key("events").begin_array();
  for (const Event& event : events) wire::write_event(json, event);
  json.end_array().end_object();
  out << json.text() << std::endl;
}

// The tasks and children of its steps, newest first: as many as one page has.
StepExecutions steps_of(const Target& target, const ExecutionId& run) {
  StepExecutions steps;
  for (const Kind kind : {Kind::task, Kind::workflow}) {
    ListFilter filter;
    filter.name_space = target.name_space;
    filter.kind = kind;
    filter.parent = run;
    filter.limit = 1000;
    for (Execution& step : target.engine->list(filter)) steps.emplace(step.step, std::move(step));
  }
  return steps;
}

int history(const Program& program, const HistoryFlags& flags) {
  require_workflow_id("WORKFLOW_ID", flags.workflow_id);
  const Target target = flags.target.open(program);
  const Execution run = find_run(target, flags);
  const std::vector<Event> events = read_history(*target.engine, target.name_space, run.id);
  if (flags.to_export) {
    print_export(program.out, run, events);
  } else if (flags.target.json()) {
    print_json(program.out, run, events);
  } else {
    program.out << render_timeline(run, events, steps_of(target, run.id), SystemClock().now(), Paint::of(program),
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
  command->add_flag("--export", flags->to_export, "Write it as JSON for a replay against changed code");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return history(program, *flags); }; });
}

}  // namespace hapax
