#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/execution_id.h"
#include "cli/find_execution.h"
#include "cli/paint.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/terminal_text.h"
#include "core/notes.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct GetFlags {
  TargetFlags target;
  std::string id;
};

using Fields = std::vector<std::pair<std::string, Cell>>;

std::string when(Time time, Time now) { return fmt::format("{} ({})", format_time(time), relative(time, now)); }

void add_run(Fields& fields, const RunState& run, Time now) {
  fields.emplace_back("steps", Cell(fmt::format("{}, in {} events (hapax history shows them)", run.steps, run.events)));
  if (run.stuck > 0) {
    fields.emplace_back("stuck", Cell(fmt::format("{} times; hapax why says more", run.stuck), Colour::red));
  }
  if (run.wake_at) fields.emplace_back("wakes", Cell(when(*run.wake_at, now)));
  if (run.continued_as) fields.emplace_back("continued as", Cell(run.continued_as->to_string()));
}

Fields describe(const Execution& execution, Time now) {
  Fields fields;
  const auto add = [&](std::string label, std::string value, Colour colour = Colour::none) {
    fields.emplace_back(std::move(label), Cell(std::move(value), colour));
  };
  const bool workflow = execution.kind == Kind::workflow;
  if (workflow) add("workflow", execution.idempotency_key.value_or(""), Colour::bold);
  add("id", execution.id.to_string(), workflow ? Colour::none : Colour::bold);
  add("type", execution.type);
  add("queue", execution.queue);
  add("status", std::string(to_string(execution.status)), colour_of(execution.status));
  if (workflow) {
    add_run(fields, execution.run, now);
  } else {
    if (execution.idempotency_key) add("key", *execution.idempotency_key);
    add("attempt",
        fmt::format("{} of {}", execution.attempt, std::max(execution.max_attempts, execution.attempt_limit)));
  }
  if (execution.parent) add("part of", fmt::format("{}, step {}", execution.parent_workflow_id, execution.step));
  if (execution.priority != 0) add("priority", std::to_string(execution.priority));
  if (execution.concurrency_key) add("concurrency key", *execution.concurrency_key);
  if (execution.timeout) add("timeout", format_duration(*execution.timeout));
  if (execution.deadline_at) add("deadline", when(*execution.deadline_at, now));
  add("created", when(execution.created_at, now));
  if (execution.status == Status::pending && execution.run_at > now) add("runs", when(execution.run_at, now));
  if (execution.started_at) add("started", when(*execution.started_at, now));
  if (execution.finished_at) add("finished", when(*execution.finished_at, now));
  if (execution.cancel_requested_at) add("cancel", "requested", Colour::yellow);
  if (execution.status == Status::running) {
    add("worker", execution.worker);
    if (execution.lease_expires_at) add("lease until", when(*execution.lease_expires_at, now));
  }
  add("input", execution.input);
  if (execution.result) add("result", *execution.result);
  const auto notes = read_notes(execution);
  if (notes && notes->progress) add("progress", *notes->progress);
  if (execution.error) {
    add("error", fmt::format("{}: {}", execution.error->type, execution.error->message), Colour::red);
    if (execution.error->details) add("details", *execution.error->details);
  }
  return fields;
}

// What is for people to read line by line: the stack of the last error, the log of an attempt.
void print_texts(const Program& program, const Execution& execution) {
  const Paint paint = Paint::of(program);
  if (execution.error && execution.error->stack) {
    program.out << "\n" << paint(Colour::bold, "stack") << "\n" << escape_controls(*execution.error->stack) << "\n";
  }
  const auto notes = read_notes(execution);
  if (!notes || notes->log.empty()) return;
  program.out << "\n" << paint(Colour::bold, fmt::format("log of attempt {}", notes->attempt)) << "\n";
  if (notes->dropped > 0) program.out << fmt::format("({} earlier lines are gone)\n", notes->dropped);
  for (const std::string& line : notes->log) program.out << escape_controls(line) << "\n";
}

// The steps that share an earlier task or workflow by its identity: they ran nothing themselves.
void print_shared_steps(const Program& program, const Target& target, const Execution& run) {
  Table table({">step", "type", "stands for", "which was"});
  for (const Event& event : read_history(*target.engine, target.name_space, run.id)) {
    if (!is_deduplicated(event)) continue;
    table.add({std::to_string(event.step), event.name, event.execution ? event.execution->to_string() : "",
               Cell(std::string(to_string(*event.status)), colour_of(*event.status))});
  }
  if (table.empty()) return;
  program.out << "\n" << table.render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt);
}

int get(const Program& program, const GetFlags& flags) {
  require_workflow_id("ID", flags.id);
  const Target target = flags.target.open(program);
  const auto execution = find_execution(*target.engine, target.name_space, flags.id);
  if (!execution) throw execution_not_found(flags.id);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_execution_with_log(out, *execution);
    program.out << out.text() << std::endl;
    return kOk;
  }
  const Paint paint = Paint::of(program);
  program.out << render_fields(paint, describe(*execution, SystemClock().now()));
  if (!execution->failed_attempts.empty()) {
    Table table({">attempt", "started", "took", "worker", "error"});
    for (const AttemptRecord& record : execution->failed_attempts) {
      table.add({std::to_string(record.attempt), format_time(record.started_at),
                 format_age(record.ended_at - record.started_at), record.worker,
                 Cell(fmt::format("{}: {}", record.error.type, record.error.message), Colour::red)});
    }
    program.out << "\n" << table.render(paint, program.terminal ? terminal_width() : std::nullopt);
  }
  print_texts(program, *execution);
  if (execution->kind == Kind::workflow) print_shared_steps(program, target, *execution);
  program.out.flush();
  return kOk;
}

}  // namespace

void add_get(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("get", "Show a task or workflow: status, result, and every attempt that failed");
  auto flags = std::make_shared<GetFlags>();
  command->add_option("ID", flags->id, "The task's id, or the workflow's")->required()->type_name("");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return get(program, *flags); }; });
}

}  // namespace hapax
