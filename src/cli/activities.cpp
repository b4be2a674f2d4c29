#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/activity_flags.h"
#include "cli/activity_words.h"
#include "cli/target.h"
#include "wire/activity.h"

namespace hapax {

namespace {

constexpr std::int32_t kPage = 500;

struct ActivitiesFlags {
  TargetFlags target;
  ActivityFlags definition;
  std::string shown;  // of `hapax activities ID`
  std::string id;
  std::string after;
  std::int32_t limit = 100;
};

void print(const Program& program, const ActivitiesFlags& flags, const ActivityView& activity) {
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_activity(out, activity);
    program.out << out.text() << std::endl;
    return;
  }
  program.out << render_activity(activity, SystemClock().now(), Paint::of(program),
                                 program.terminal ? terminal_width() : std::nullopt)
              << std::flush;
}

// Page by page, so that any limit works.
ActivitiesPage read(const Target& target, const ActivitiesFlags& flags) {
  ActivitiesPage all;
  all.next_cursor = flags.after;
  while (all.next_cursor && static_cast<std::int32_t>(all.activities.size()) < flags.limit) {
    const std::int32_t wanted = flags.limit - static_cast<std::int32_t>(all.activities.size());
    ActivitiesPage page =
        target.engine->activities().list(target.name_space, *all.next_cursor, std::min(kPage, wanted));
    for (ActivityView& activity : page.activities) all.activities.push_back(std::move(activity));
    all.next_cursor = std::move(page.next_cursor);
  }
  return all;
}

Cell last_cell(const Target& target, const std::string& id) {
  const auto page = target.engine->activities().runs(target.name_space, id, "", 1);
  return page && !page->runs.empty() ? disposition_cell(page->runs.front()) : Cell("-");
}

int list(const Program& program, const ActivitiesFlags& flags) {
  if (flags.limit < 1) throw CommandError(kUsage, "--limit must be at least 1");
  const Target target = flags.target.open(program);
  const ActivitiesPage page = read(target, flags);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_activities(out, page);
    program.out << out.text() << std::endl;
    return kOk;
  }
  if (page.activities.empty() && program.terminal) {
    program.out << "no activities" << std::endl;
    return kOk;
  }
  const Time now = SystemClock().now();
  Table table({"activity", "next", "last", "starts", "trigger"});
  for (const ActivityView& activity : page.activities) {
    table.add({activity.id, next_in_words(activity, now), last_cell(target, activity.id),
               start_in_words(activity.settings), trigger_in_words(activity.settings)});
  }
  program.out << table.render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt);
  if (page.next_cursor && program.terminal) {
    program.out << fmt::format("there are more; continue with --after {}\n", printable(*page.next_cursor));
  }
  program.out.flush();
  return kOk;
}

int show(const Program& program, const ActivitiesFlags& flags, const std::string& id) {
  require_activity_id(id);
  const Target target = flags.target.open(program);
  const auto activity = target.engine->activities().find(target.name_space, id);
  if (!activity) throw activity_not_found(id);
  print(program, flags, *activity);
  return kOk;
}

int put(const Program& program, const ActivitiesFlags& flags) {
  require_activity_id(flags.id);
  const ActivitySettings settings = flags.definition.settings(program);
  const Target target = flags.target.open_or_create(program);
  print(program, flags, target.engine->activities().put(target.name_space, flags.id, settings));
  return kOk;
}

int remove(const Program& program, const ActivitiesFlags& flags) {
  require_activity_id(flags.id);
  const Target target = flags.target.open(program);
  if (!target.engine->activities().remove(target.name_space, flags.id)) throw activity_not_found(flags.id);
  if (flags.target.json()) {
    program.out
        << JsonWriter().begin_object().key("id").string(flags.id).key("removed").boolean(true).end_object().text()
        << std::endl;
  } else {
    program.out << "removed " << printable(flags.id) << "; its runs stay readable" << std::endl;
  }
  return kOk;
}

int set_paused(const Program& program, const ActivitiesFlags& flags, bool paused) {
  require_activity_id(flags.id);
  const Target target = flags.target.open(program);
  const auto activity = target.engine->activities().set_paused(target.name_space, flags.id, paused);
  if (!activity) throw activity_not_found(flags.id);
  print(program, flags, *activity);
  return kOk;
}

int pause(const Program& program, const ActivitiesFlags& flags) { return set_paused(program, flags, true); }
int unpause(const Program& program, const ActivitiesFlags& flags) { return set_paused(program, flags, false); }
int show_named(const Program& program, const ActivitiesFlags& flags) { return show(program, flags, flags.id); }

}  // namespace

void add_activities(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("activities",
                                     "Activities, which a schedule or events start: list, show, put, "
                                     "remove, pause, unpause");
  auto flags = std::make_shared<ActivitiesFlags>();
  flags->target.add(*command);
  command->add_option("ID", flags->shown, "Show this one (also: hapax activities show ID)")->type_name("");
  command->add_option("--after", flags->after, "Only those after this one")->type_name("ID");
  command->add_option("--limit", flags->limit, "At most this many (default: 100)")->type_name("N");
  const auto add = [&](const std::string& name, const std::string& description, auto run) {
    auto* sub = command->add_subcommand(name, description)->fallthrough();
    sub->callback([&program, &action, flags, run, name] {
      action = [&program, flags, run, name] {
        if (!flags->shown.empty()) {
          throw CommandError(kUsage, fmt::format("activities {} takes no argument \"{}\"", name, flags->shown));
        }
        return run(program, *flags);
      };
    });
    return sub;
  };
  const auto add_named = [&](const std::string& name, const std::string& description, auto run) {
    auto* sub = add(name, description, run);
    sub->add_option("ID", flags->id, "The activity's id")->required()->type_name("");
    return sub;
  };
  add("list", "List them (also: hapax activities)", list);
  add_named("show", "Show one, with its next and its last five firings", show_named);
  flags->definition.add(*add_named("put", "Define one, or change its definition", put));
  add_named("remove", "Remove one; its runs stay readable until their retention ends", remove);
  add_named("pause", "Fire nothing", pause);
  add_named("unpause", "Fire again; what passed during the pause follows the misfire policy", unpause);
  command->callback([&program, &action, flags] {
    if (action) return;
    action = [&program, flags] {
      return flags->shown.empty() ? list(program, *flags) : show(program, *flags, flags->shown);
    };
  });
}

}  // namespace hapax
