#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "config/nearest.h"

namespace hapax {

namespace {

constexpr std::string_view kFooter =
    "Try:\n"
    "  hapax serve                             serve on 127.0.0.1:7373, keep everything in hapax.db\n"
    "  hapax serve --store memory:             keep nothing\n"
    "  hapax COMMAND --help                    what a command takes\n"
    "\n"
    "Settings come from hapax.toml, then HAPAX_* variables, then flags.";

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Words that nothing took: the first one is what the user got wrong.
std::string explain_extra(const CLI::App& app, const std::string& extra) {
  const auto chosen = app.get_subcommands();
  if (extra.starts_with('-')) {
    const CLI::App& owner = chosen.empty() ? app : *chosen.front();
    const std::string flag = extra.substr(0, extra.find('='));
    return fmt::format("unknown flag {}{}", flag, suggestion(flag, flag_names(owner)));
  }
  if (!chosen.empty()) return fmt::format("{} takes no argument \"{}\"", chosen.front()->get_name(), extra);
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return fmt::format("unknown command \"{}\"{}", extra, suggestion(extra, names));
}

int usage_error(const Program& program, const CLI::App& app, const std::string& message) {
  const auto chosen = app.get_subcommands();
  program.err << "hapax: " << message << "\n"
              << "Run `hapax " << (chosen.empty() ? "" : chosen.front()->get_name() + " ") << "--help` to see what there is.\n";
  return kUsage;
}

int run_action(const Action& action, const Program& program) {
  try {
    return action();
  } catch (const ConfigError& e) {
    program.err << "hapax: " << e.what() << "\n";
    return kUsage;
  } catch (const std::exception& e) {
    program.err << "hapax: " << e.what() << "\n";
    return kFailed;
  }
}

}  // namespace

int run_cli(std::vector<std::string> arguments, const Program& program) {
  CLI::App app("Hapax: a durable task queue. Say it twice, it happens once.", "hapax");
  app.footer(std::string(kFooter));
  app.set_version_flag("--version", "hapax " + program.version);
  app.set_help_flag("-h,--help", "Print this text");
  Action action;
  add_serve(app, program, action);
  add_migrate(app, program, action);
  add_version(app, program, action);
  app.allow_extras();
  for (auto* command : app.get_subcommands(nullptr)) command->allow_extras();

  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::Success& e) {
    return app.exit(e, program.out, program.err) == 0 ? kOk : kFailed;
  } catch (const CLI::ParseError& e) {
    return usage_error(program, app, e.what());
  }
  const auto extras = app.remaining(true);
  if (!extras.empty()) return usage_error(program, app, explain_extra(app, extras.front()));
  if (!action) {
    program.err << app.help();
    return kUsage;
  }
  return run_action(action, program);
}

}  // namespace hapax
