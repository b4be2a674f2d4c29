#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/activity_words.h"
#include "cli/target.h"
#include "wire/activity.h"

namespace hapax {

namespace {

constexpr std::int32_t kPage = 500;

struct RunsFlags {
  TargetFlags target;
  std::string id, after;
  std::int32_t limit = 50;
};

// Page by page, so that any limit works.
RunsPage read(const Target& target, const RunsFlags& flags) {
  RunsPage all;
  all.next_cursor = flags.after;
  while (all.next_cursor && static_cast<std::int32_t>(all.runs.size()) < flags.limit) {
    const std::int32_t wanted = flags.limit - static_cast<std::int32_t>(all.runs.size());
    auto page =
        target.engine->activities().runs(target.name_space, flags.id, *all.next_cursor, std::min(kPage, wanted));
    if (!page) throw activity_not_found(flags.id);
    all.runs.insert(all.runs.end(), page->runs.begin(), page->runs.end());
    all.next_cursor = std::move(page->next_cursor);
  }
  return all;
}

int runs(const Program& program, const RunsFlags& flags) {
  if (flags.limit < 1) throw CommandError(kUsage, "--limit must be at least 1");
  require_activity_id(flags.id);
  const Target target = flags.target.open(program);
  const RunsPage page = read(target, flags);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_runs(out, page);
    program.out << out.text() << std::endl;
    return kOk;
  }
  if (page.runs.empty() && program.terminal) {
    program.out << "it has not fired yet" << std::endl;
    return kOk;
  }
  program.out << run_table(page.runs).render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt);
  if (page.next_cursor && program.terminal) {
    program.out << fmt::format("the newest {}; continue with --after {}\n", page.runs.size(), *page.next_cursor);
  }
  program.out.flush();
  return kOk;
}

}  // namespace

void add_runs(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("runs", "Show what became of an activity's firings, newest first");
  auto flags = std::make_shared<RunsFlags>();
  command->add_option("ID", flags->id, "The activity's id")->required()->type_name("");
  command->add_option("--after", flags->after, "The next_cursor of the previous page")->type_name("CURSOR");
  command->add_option("--limit", flags->limit, "At most this many (default: 50)")->type_name("N");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return runs(program, *flags); }; });
}

}  // namespace hapax
