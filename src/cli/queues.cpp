#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/paint.h"
#include "cli/setting_words.h"
#include "cli/submission_flags.h"
#include "cli/table.h"
#include "cli/target.h"
#include "core/field.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

using Form = KnownSetting::Form;

const std::vector<KnownSetting>& known_settings() {
  static const std::vector<KnownSetting> known{{"retention", Form::text},
                                               {"rate_limit", Form::text},
                                               {"burst", Form::number},
                                               {"max_running", Form::number},
                                               {"concurrency_limit", Form::number},
                                               {"cancel_grace", Form::text},
                                               {"idempotency_ttl", Form::text},
                                               {"paused", Form::boolean}};
  return known;
}

struct QueueFlags {
  TargetFlags target;
  std::string name;
  std::vector<std::string> words;
};

void print(const Program& program, const QueueFlags& flags, const QueueView& queue) {
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_queue(out, queue);
    program.out << out.text() << std::endl;
    return;
  }
  const Time now = SystemClock().now();
  std::vector<std::pair<std::string, Cell>> fields{{"queue", Cell(queue.name, Colour::bold)},
                                                   {"pending", std::to_string(queue.count.pending)},
                                                   {"running", std::to_string(queue.count.running)}};
  if (queue.count.oldest_run_at) fields.emplace_back("oldest", relative(*queue.count.oldest_run_at, now));
  if (queue.settings.paused.value_or(false)) fields.emplace_back("paused", Cell("yes", Colour::yellow));
  const std::string settings = settings_in_words(queue.settings.to_json());
  fields.emplace_back("settings", settings.empty() ? "none" : settings);
  if (!queue.from_file.empty())
    fields.emplace_back("from the file", fmt::format("{}", fmt::join(queue.from_file, " ")));
  program.out << render_fields(Paint::of(program), fields) << std::flush;
}

int list(const Program& program, const QueueFlags& flags) {
  const Target target = flags.target.open(program);
  const auto queues = target.engine->queues(target.name_space);
  if (flags.target.json()) {
    JsonWriter out;
    out.begin_object().key("queues").begin_array();
    for (const QueueView& queue : queues) wire::write_queue(out, queue);
    program.out << out.end_array().end_object().text() << std::endl;
    return kOk;
  }
  const Time now = SystemClock().now();
  Table table({"queue", ">pending", ">running", ">oldest", "settings"});
  for (const QueueView& queue : queues) {
    const bool paused = queue.settings.paused.value_or(false);
    const auto& oldest = queue.count.oldest_run_at;
    table.add({Cell(queue.name, paused ? Colour::yellow : Colour::none), std::to_string(queue.count.pending),
               std::to_string(queue.count.running), oldest && *oldest <= now ? format_age(now - *oldest) : "",
               settings_in_words(queue.settings.to_json())});
  }
  if (table.empty() && program.terminal) {
    program.out << "no queues yet: the first task of a queue makes it" << std::endl;
    return kOk;
  }
  program.out << table.render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt) << std::flush;
  return kOk;
}

int show(const Program& program, const QueueFlags& flags) {
  require_name("QUEUE", flags.name);
  const Target target = flags.target.open(program);
  const QueueView queue = target.engine->queue(target.name_space, flags.name);
  if (!queue.known) {
    throw CommandError(kNotFound, fmt::format("there is no queue \"{}\": it has no tasks and no settings", flags.name));
  }
  print(program, flags, queue);
  return kOk;
}

int set(const Program& program, const QueueFlags& flags) {
  require_name("QUEUE", flags.name);
  change_settings("{}", {}, flags.words, known_settings());  // report misspelt settings before opening anything
  const Target target = flags.target.open_or_create(program);
  const QueueView before = target.engine->queue(target.name_space, flags.name);
  const Json document = change_settings(before.settings.to_json(), before.from_file, flags.words, known_settings());
  try {
    print(program, flags, target.engine->put_queue(target.name_space, flags.name, QueueSettings::parse(document)));
  } catch (const InvalidField& error) {
    throw setting_error(error);
  }
  return kOk;
}

int pause(const Program& program, const QueueFlags& flags, bool paused) {
  require_name("QUEUE", flags.name);
  const Target target = flags.target.open_or_create(program);
  print(program, flags, target.engine->set_paused(target.name_space, flags.name, paused));
  return kOk;
}

}  // namespace

void add_queues(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("queues", "Queues: list, show, set, pause, unpause");
  auto flags = std::make_shared<QueueFlags>();
  flags->target.add(*command);
  const auto add = [&](const std::string& name, const std::string& description, bool named, auto run) {
    auto* sub = command->add_subcommand(name, description)->fallthrough();
    if (named) sub->add_option("QUEUE", flags->name, "The queue's name")->required()->type_name("");
    sub->callback(
        [&program, &action, flags, run] { action = [&program, flags, run] { return run(program, *flags); }; });
    return sub;
  };
  add("list", "List them (also: hapax queues)", false, list);
  add("show", "Show one", true, show);
  std::string names;
  for (const KnownSetting& setting : known_settings()) names += (names.empty() ? "" : ", ") + setting.name;
  add("set", "Set NAME=VALUE, the other settings stay", true, set)
      ->add_option("SETTING", flags->words, "NAME=VALUE, or NAME= to remove it: " + names)
      ->required()
      ->type_name("");
  add("pause", "Hand out nothing more", true, [](const Program& p, const QueueFlags& f) { return pause(p, f, true); });
  add("unpause", "Hand out again", true, [](const Program& p, const QueueFlags& f) { return pause(p, f, false); });
  command->callback([&program, &action, flags] {
    if (!action) action = [&program, flags] { return list(program, *flags); };
  });
}

}  // namespace hapax
