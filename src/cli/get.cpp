#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/execution_id.h"
#include "cli/paint.h"
#include "cli/table.h"
#include "cli/target.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct GetFlags {
  TargetFlags target;
  std::string id;
};

using Fields = std::vector<std::pair<std::string, Cell>>;

std::string when(Time time, Time now) { return fmt::format("{} ({})", format_time(time), relative(time, now)); }

Fields describe(const Execution& execution, Time now) {
  Fields fields;
  const auto add = [&](std::string label, std::string value, Colour colour = Colour::none) {
    fields.emplace_back(std::move(label), Cell(std::move(value), colour));
  };
  add("id", execution.id.to_string(), Colour::bold);
  add("type", execution.type);
  add("queue", execution.queue);
  add("status", std::string(to_string(execution.status)), colour_of(execution.status));
  if (execution.idempotency_key) add("key", *execution.idempotency_key);
  add("attempt", fmt::format("{} of {}", execution.attempt, std::max(execution.max_attempts, execution.attempt_limit)));
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
  if (execution.error)
    add("error", fmt::format("{}: {}", execution.error->type, execution.error->message), Colour::red);
  return fields;
}

int get(const Program& program, const GetFlags& flags) {
  const ExecutionId id = require_id(flags.id);
  const Target target = flags.target.open(program);
  const auto execution = target.engine->find(target.name_space, id);
  if (!execution) throw task_not_found(flags.id);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_execution(out, *execution);
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
  program.out.flush();
  return kOk;
}

}  // namespace

void add_get(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("get", "Show a task: status, result, and every attempt that failed");
  auto flags = std::make_shared<GetFlags>();
  command->add_option("ID", flags->id, "The task's id")->required()->type_name("");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return get(program, *flags); }; });
}

}  // namespace hapax
