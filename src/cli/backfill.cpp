#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/activity_words.h"
#include "cli/target.h"
#include "core/field.h"
#include "wire/activity.h"

namespace hapax {

namespace {

struct BackfillFlags {
  TargetFlags target;
  std::string id, from, to;
  bool force = false;
};

Time require_time(const std::string& flag, const std::string& text) {
  if (const auto time = parse_time(text)) return *time;
  throw CommandError(kUsage, fmt::format("{} must be a time such as 2026-01-27T12:00:00Z, not \"{}\"", flag, text));
}

int backfill(const Program& program, const BackfillFlags& flags) {
  require_activity_id(flags.id);
  const Backfill wanted{require_time("--from", flags.from), require_time("--to", flags.to), flags.force};
  const Target target = flags.target.open(program);
  std::optional<std::vector<ActivityRun>> runs;
  try {
    runs = await<std::optional<std::vector<ActivityRun>>>([&](auto reply) {
      target.engine->activities().backfill(target.name_space, flags.id, wanted, std::move(reply));
    });
  } catch (const InvalidField& error) {
    const std::string flag = error.pointer() == "/from" ? "--from " : error.pointer() == "/to" ? "--to " : "";
    throw CommandError(kUsage, flag + error.what());
  }
  if (!runs) throw activity_not_found(flags.id);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_runs(out, *runs);
    program.out << out.text() << std::endl;
  } else if (runs->empty()) {
    program.out << "its schedule has no firings in that time" << std::endl;
  } else {
    program.out << run_table(*runs).render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt)
                << std::flush;
  }
  return kOk;
}

}  // namespace

void add_backfill(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand(
      "backfill", "Start what an activity's schedule would have fired in a past window and what did not run");
  auto flags = std::make_shared<BackfillFlags>();
  command->add_option("ID", flags->id, "The activity's id")->required()->type_name("");
  command->add_option("--from", flags->from, "The first time, included")->required()->type_name("TIME");
  command->add_option("--to", flags->to, "The last time, included")->required()->type_name("TIME");
  command->add_flag("--force", flags->force,
                    "Also those that a compressed or caught-up run covers, each under its own id");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return backfill(program, *flags); }; });
}

}  // namespace hapax
