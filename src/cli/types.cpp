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
#include "wire/error_code.h"
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

// What decides the identity of submissions without a key.
std::string describe_identity(const TypeIdentity& identity) {
  const std::string_view strategy = to_string(identity.strategy);
  switch (identity.source) {
    case TypeIdentity::Source::file: return fmt::format("{}, stated in the configuration file", strategy);
    case TypeIdentity::Source::api: return fmt::format("{}, stated by its settings", strategy);
    case TypeIdentity::Source::code: return fmt::format("{}, stated in a program's code", strategy);
    case TypeIdentity::Source::declared:
      return fmt::format("{}: it is declared and states none (steps of workflows: {})", strategy,
                         to_string(identity.of_steps()));
    case TypeIdentity::Source::undeclared: break;
  }
  return fmt::format("{}: it is not declared, and [identity] undeclared says so (steps of workflows: {})", strategy,
                     to_string(identity.of_steps()));
}

bool is_known(const TypeView& type) { return type.declared || type.settings != TypeSettings(); }

void print(const Program& program, const TypeFlags& flags, const TypeView& type) {
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_type(out, type);
    program.out << out.text() << std::endl;
    return;
  }
  const std::string settings = settings_in_words(type.settings.to_json());
  std::vector<std::pair<std::string, Cell>> fields{{"type", Cell(type.name, Colour::bold)},
                                                   {"declared", type.declared ? "yes" : "no, only tuned"},
                                                   {"identity", describe_identity(type.identity)},
                                                   {"settings", settings.empty() ? "none" : settings}};
  if (!type.from_file.empty()) fields.emplace_back("from the file", fmt::format("{}", fmt::join(type.from_file, " ")));
  if (!type.from_code.empty()) fields.emplace_back("from code", fmt::format("{}", fmt::join(type.from_code, " ")));
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
  Table table({"type", "queue", "identity", "from", "settings"});
  for (const TypeView& type : types) {
    table.add({type.name, type.settings.queue.value_or("default"), std::string(to_string(type.identity.strategy)),
               std::string(wire::to_string(type.identity.source)), settings_in_words(type.settings.to_json())});
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
  if (!is_known(type)) {
    throw CommandError(kNotFound, fmt::format("the type \"{0}\" is not declared and has no settings; set some with: "
                                              "hapax types set {0} NAME=VALUE",
                                              flags.name));
  }
  print(program, flags, type);
  return kOk;
}

int set(const Program& program, const TypeFlags& flags) {
  require_name("TYPE", flags.name);
  const Json patch = settings_patch(flags.words, known_settings());  // report misspelt settings before opening anything
  const Target target = flags.target.open_or_create(program);
  try {
    print(program, flags, target.engine->patch_type(target.name_space, flags.name, patch));
  } catch (const InvalidField& error) {
    throw setting_error(error);
  }
  return kOk;
}

}  // namespace

void add_types(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("types", "The settings of types: list, show, set");
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
  add("set", "Set NAME=VALUE; the other settings stay; only identity changes which submissions are the same", true, set)
      ->add_option("SETTING", flags->words, "NAME=VALUE, or NAME= to remove it: " + names)
      ->type_name("");
  command->callback([&program, &action, flags] {
    if (!action) action = [&program, flags] { return list(program, *flags); };
  });
}

}  // namespace hapax
