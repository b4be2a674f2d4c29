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
  static const std::vector<KnownSetting> known{
      {"queue", Form::text},           {"identity", Form::text},       {"identity_fields", Form::list},
      {"scope", Form::text},           {"reuse", Form::text},          {"on_duplicate", Form::text},
      {"idempotency_ttl", Form::text}, {"priority", Form::number},     {"max_attempts", Form::number},
      {"retry.initial", Form::text},   {"retry.factor", Form::number}, {"retry.max", Form::text},
      {"timeout", Form::text},         {"deadline", Form::text}};
  return known;
}

struct TypeFlags {
  TargetFlags target;
  std::string name;
  std::vector<std::string> words;
};

void print(const Program& program, const TypeFlags& flags, const TypeView& type) {
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_type(out, type);
    program.out << out.text() << std::endl;
    return;
  }
  const std::string settings = settings_in_words(type.settings.to_json());
  std::vector<std::pair<std::string, Cell>> fields{{"type", Cell(type.name, Colour::bold)},
                                                   {"declared", type.declared ? "yes" : "no"},
                                                   {"settings", settings.empty() ? "none" : settings}};
  if (!type.from_file.empty()) fields.emplace_back("from the file", fmt::format("{}", fmt::join(type.from_file, " ")));
  program.out << render_fields(Paint::of(program), fields) << std::flush;
}

int list(const Program& program, const TypeFlags& flags) {
  const Target target = flags.target.open(program);
  const auto types = target.engine->types(target.name_space);
  if (flags.target.json()) {
    JsonWriter out;
    out.begin_object().key("types").begin_array();
    for (const TypeView& type : types) wire::write_type(out, type);
    program.out << out.end_array().end_object().text() << std::endl;
    return kOk;
  }
  Table table({"type", "queue", "identity", "settings"});
  for (const TypeView& type : types) {
    table.add({type.name, type.settings.queue.value_or("default"),
               std::string(to_string(type.settings.identity.value_or(Strategy::strict))),
               settings_in_words(type.settings.to_json())});
  }
  if (table.empty() && program.terminal) {
    program.out << "no types are declared; tasks of any type work without" << std::endl;
    return kOk;
  }
  program.out << table.render(Paint::of(program), program.terminal ? terminal_width() : std::nullopt) << std::flush;
  return kOk;
}

int show(const Program& program, const TypeFlags& flags) {
  require_name("TYPE", flags.name);
  const Target target = flags.target.open(program);
  const TypeView type = target.engine->type(target.name_space, flags.name);
  if (!type.declared) {
    throw CommandError(kNotFound, fmt::format("the type \"{0}\" is not declared; declare it with: hapax types set {0} "
                                              "NAME=VALUE",
                                              flags.name));
  }
  print(program, flags, type);
  return kOk;
}

int set(const Program& program, const TypeFlags& flags) {
  require_name("TYPE", flags.name);
  change_settings("{}", {}, flags.words, known_settings());  // what is misspelt is told before anything is opened
  const Target target = flags.target.open_or_create(program);
  const TypeView before = target.engine->type(target.name_space, flags.name);
  const Json document = change_settings(before.settings.to_json(), before.from_file, flags.words, known_settings());
  try {
    print(program, flags, target.engine->put_type(target.name_space, flags.name, TypeSettings::parse(document)));
  } catch (const InvalidField& error) {
    throw setting_error(error);
  }
  return kOk;
}

}  // namespace

void add_types(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("types", "Declared types: list, show, set");
  auto flags = std::make_shared<TypeFlags>();
  flags->target.add(*command);
  const auto add = [&](const std::string& name, const std::string& description, bool named, auto run) {
    auto* sub = command->add_subcommand(name, description)->fallthrough();
    if (named) sub->add_option("TYPE", flags->name, "The type's name")->required()->type_name("");
    sub->callback(
        [&program, &action, flags, run] { action = [&program, flags, run] { return run(program, *flags); }; });
    return sub;
  };
  add("list", "List them (also: hapax types)", false, list);
  add("show", "Show one", true, show);
  std::string names;
  for (const KnownSetting& setting : known_settings()) names += (names.empty() ? "" : ", ") + setting.name;
  add("set", "Declare it; set NAME=VALUE, the other settings stay", true, set)
      ->add_option("SETTING", flags->words, "NAME=VALUE, or NAME= to take it back: " + names)
      ->type_name("");
  command->callback([&program, &action, flags] {
    if (!action) action = [&program, flags] { return list(program, *flags); };
  });
}

}  // namespace hapax
