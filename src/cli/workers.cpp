#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/paint.h"
#include "cli/submission_flags.h"
#include "cli/table.h"
#include "cli/target.h"
#include "wire/worker.h"

namespace hapax {

namespace {

std::string library_of(const WorkerOrigin& origin) {
  return origin.version.empty() ? origin.sdk : origin.sdk + " " + origin.version;
}

// "any type", "charge, mail", or "charge, mail; workflows too".
std::string claims_of(const WorkerInfo& worker) {
  const std::string types = worker.types.empty() ? "any type" : fmt::format("{}", fmt::join(worker.types, ", "));
  if (!worker.workflows) return types;
  return worker.tasks ? types + "; workflows too" : types + "; workflows only";
}

int workers(const Program& program, const TargetFlags& flags) {
  const Target target = flags.open(program);
  const std::vector<WorkerInfo> all = target.engine->workers(target.name_space);
  if (flags.json()) {
    program.out << wire::write_workers(all) << std::endl;
    return kOk;
  }
  const Time now = SystemClock().now();
  Table table({"worker", "library", "host", ">pid", ">running", ">seen", "queues", "claims"});
  for (const WorkerInfo& worker : all) {
    const bool is_gone = worker.last_seen_at + std::chrono::minutes(1) < now && worker.running == 0;
    table.add({Cell(worker.name, is_gone ? Colour::dim : Colour::none), library_of(worker.origin), worker.origin.host,
               worker.origin.pid == 0 ? "" : std::to_string(worker.origin.pid), std::to_string(worker.running),
               relative(worker.last_seen_at, now), fmt::format("{}", fmt::join(worker.queues, ", ")),
               claims_of(worker)});
  }
  if (table.empty() && program.terminal) {
    program.out << "nobody has claimed within the last hour" << std::endl;
    return kOk;
  }
  program.out << table.render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt) << std::flush;
  return kOk;
}

}  // namespace

void add_workers(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("workers", "List the workers that have claimed within the last hour");
  auto flags = std::make_shared<TargetFlags>();
  flags->add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return workers(program, *flags); }; });
}

}  // namespace hapax
