#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/command.h"
#include "cli/execution_id.h"
#include "cli/find_execution.h"
#include "cli/paint.h"
#include "cli/submission_flags.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/terminal_text.h"
#include "cli/unclaimed_report.h"
#include "config/nearest.h"
#include "core/name.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

constexpr std::int32_t kPage = 500;
constexpr std::string_view kStatuses = "pending|running|suspended|completed|failed|cancelled|timed_out";

struct ListFlags {
  TargetFlags target;
  std::optional<std::string> queue, type, key, status, parent, before;
  std::int32_t limit = 50;
  bool workflows = false, stuck = false;
};

Status require_status(const std::string& text) {
  if (const auto status = parse_status(text)) return *status;
  const std::vector<std::string> known{"pending", "running",   "suspended", "completed",
                                       "failed",  "cancelled", "timed_out"};
  const std::string meant = suggestion(text, known);
  throw CommandError(kUsage,
                     fmt::format("--status: there is no status \"{}\"{}", text,
                                 meant.empty() ? fmt::format("; it is one of {}", fmt::join(known, ", ")) : meant));
}

ListFilter filter_of(const ListFlags& flags, const std::string& name_space) {
  ListFilter filter;
  filter.name_space = name_space;
  filter.kind = flags.workflows ? Kind::workflow : Kind::task;
  if (flags.queue) require_name("--queue", *flags.queue);
  if (flags.type) require_name("--type", *flags.type);
  if (flags.key) require_workflow_id("--key", *flags.key);
  filter.queue = flags.queue;
  filter.type = flags.type;
  filter.idempotency_key = flags.key;
  if (flags.status) filter.status = require_status(*flags.status);
  if (flags.before) filter.before = require_id(*flags.before);
  if (flags.stuck) {
    if (flags.status) throw CommandError(kUsage, "--stuck lists suspended workflows: leave --status out");
    filter.kind = Kind::workflow;
    filter.status = Status::suspended;
  }
  return filter;
}

// Page by page, so that any limit works.
Page read(Engine& engine, ListFilter filter, std::int32_t limit, bool only_stuck) {
  Page all;
  do {
    filter.limit = std::min(kPage, limit - static_cast<std::int32_t>(all.size() + all.damaged.size()));
    Page page = engine.list(filter);
    if (only_stuck) std::erase_if(page, [](const Execution& run) { return run.run.stuck == 0; });
    std::move(page.begin(), page.end(), std::back_inserter(all));
    std::move(page.damaged.begin(), page.damaged.end(), std::back_inserter(all.damaged));
    filter.before = all.next = page.next;
  } while (all.next && static_cast<std::int32_t>(all.size() + all.damaged.size()) < limit);
  return all;
}

void print_json(std::ostream& out, const Page& page) {
  JsonWriter json;
  wire::write_page(json, page);
  out << json.text() << std::endl;
}

Cell status_cell(const Execution& execution) {
  return Cell(std::string(to_string(execution.status)), colour_of(execution.status));
}

Table task_table(const std::vector<Execution>& executions) {
  const Time now = SystemClock().now();
  Table table({"id", "type", "queue", "status", ">attempt", ">age", "key"});
  for (const Execution& execution : executions) {
    table.add({execution.id.to_string(), execution.type, execution.queue, status_cell(execution),
               fmt::format("{}/{}", execution.attempt, execution.attempt_limit), format_age(now - execution.created_at),
               execution.idempotency_key.value_or("")});
  }
  return table;
}

Table workflow_table(const std::vector<Execution>& executions) {
  const Time now = SystemClock().now();
  Table table({"id", "type", "queue", "status", ">steps", ">age", "workflow"});
  for (const Execution& execution : executions) {
    table.add({execution.id.to_string(), execution.type, execution.queue, status_cell(execution),
               std::to_string(execution.run.steps), format_age(now - execution.created_at),
               execution.idempotency_key.value_or("")});
  }
  return table;
}

// Why each of them is stuck.
Table stuck_table(const std::vector<Execution>& executions) {
  Table table({"workflow", "type", "queue", ">turns", "next try", "error"});
  const Time now = SystemClock().now();
  for (const Execution& run : executions) {
    table.add({run.idempotency_key.value_or(""), run.type, run.queue, std::to_string(run.run.stuck),
               run.run.wake_at ? relative(*run.run.wake_at, now) : "hapax resume",
               Cell(run.error ? fmt::format("{}: {}", run.error->type, run.error->message) : "", Colour::red)});
  }
  return table;
}

// What waits and cannot begin, for there is nobody to claim it.
void print_unclaimed(const Program& program, const Target& target) {
  const Time now = SystemClock().now();
  const auto found = find_unclaimed(*target.engine, target.name_space, target.engine->queues(target.name_space), now);
  if (found.empty()) return;
  program.out
      << "\n"
      << unclaimed_table(found, now).render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt);
}

int list(const Program& program, const ListFlags& flags) {
  if (flags.limit < 1) throw CommandError(kUsage, "--limit must be at least 1");
  ListFilter filter = filter_of(flags, "");
  const Target target = flags.target.open(program);
  filter.name_space = target.name_space;
  if (flags.parent) {
    const auto parent = find_execution(*target.engine, target.name_space, *flags.parent);
    if (!parent || parent->kind != Kind::workflow) throw workflow_not_found(*flags.parent);
    filter.parent = parent->id;
  }
  const Page executions = read(*target.engine, std::move(filter), flags.limit, flags.stuck);
  if (flags.target.json()) {
    print_json(program.out, executions);
    return executions.damaged.empty() ? kOk : kFailed;
  }
  const bool workflows = flags.workflows || flags.stuck;
  const Table table = flags.stuck ? stuck_table(executions)
                      : workflows ? workflow_table(executions)
                                  : task_table(executions);
  if (table.empty() && executions.damaged.empty() && program.terminal) {
    program.out << (workflows ? "no such workflows" : "no such tasks") << std::endl;
    if (flags.stuck) print_unclaimed(program, target);
    return kOk;
  }
  program.out << table.render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt);
  if (flags.stuck) print_unclaimed(program, target);
  if (executions.next && program.terminal) {
    program.out << fmt::format("the newest {}; continue with --before {}\n", flags.limit, executions.next->to_string());
  }
  program.out.flush();
  for (const Damaged& damaged : executions.damaged) {
    program.err << fmt::format("{} cannot be read: {}\n", damaged.id.to_string(), printable(damaged.what));
  }
  return executions.damaged.empty() ? kOk : kFailed;
}

}  // namespace

void add_list(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("list", "List tasks, or workflows, newest first");
  auto flags = std::make_shared<ListFlags>();
  command->add_flag("--workflows", flags->workflows, "Workflows instead of tasks");
  command->add_flag("--stuck", flags->stuck,
                    "Workflows whose turns cannot be taken, and why; and types that nobody claims");
  command->add_option("--queue", flags->queue, "Only of this queue")->type_name("QUEUE");
  command->add_option("--type", flags->type, "Only of this type")->type_name("TYPE");
  command->add_option("--status", flags->status, "Only with this status")->type_name(std::string(kStatuses));
  command->add_option("--key", flags->key, "Only with this idempotency key, or workflow id")->type_name("KEY");
  command->add_option("--parent", flags->parent, "Only steps of this workflow")->type_name("WORKFLOW_ID");
  command->add_option("--before", flags->before, "Only older than this one")->type_name("ID");
  command->add_option("--limit", flags->limit, "At most this many (default: 50)")->type_name("N");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return list(program, *flags); }; });
}

}  // namespace hapax
