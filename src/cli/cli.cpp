#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>

#include "cli/terminal_text.h"
#include "client/remote_engine.h"
#include "config/nearest.h"
#include "core/field.h"
#include "core/secret.h"

namespace hapax {

namespace {

constexpr std::string_view kFooter =
    "Try:\n"
    "  hapax serve                                    serve on 127.0.0.1:7373, keep everything in hapax.db\n"
    "  hapax submit greet '\"Ada\"' --key greet-ada     submit a task; say it twice, it happens once\n"
    "  hapax work --exec 'cat'                        run tasks with any program\n"
    "  hapax top                                      watch\n"
    "  hapax COMMAND --help                           show a command's flags\n"
    "\n"
    "A server's settings come from hapax.toml, then HAPAX_* variables, then flags.";

const auto kAll = [](const CLI::App*) { return true; };

// The chosen command, at any depth: "queues set".
const CLI::App& chosen_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string path_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  const std::string parent = path_of(*command.get_parent());
  return parent.empty() ? command.get_name() : parent + " " + command.get_name();
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  if (command.get_fallthrough() && command.get_parent() != nullptr) {
    for (auto& name : flag_names(*command.get_parent())) names.push_back(std::move(name));
  }
  return names;
}

// The arguments that nothing took: the first one is the user's mistake.
std::string explain_extra(const CLI::App& app, const std::string& extra) {
  const CLI::App& command = chosen_command(app);
  if (extra.starts_with('-') && extra.size() > 1) {
    const std::string flag = extra.substr(0, extra.find('='));
    return fmt::format("unknown flag {}{}", flag, suggestion(flag, flag_names(command)));
  }
  std::vector<std::string> names;
  for (const auto* sub : command.get_subcommands(kAll)) names.push_back(sub->get_name());
  if (&command == &app)
    return fmt::format("unknown command \"{}\"{}", without_secrets(extra), suggestion(extra, names));
  if (!names.empty()) {
    const std::string meant = suggestion(extra, names);
    return fmt::format("{} has no command \"{}\"{}", path_of(command), without_secrets(extra),
                       meant.empty() ? fmt::format("; it has {}", fmt::join(names, ", ")) : meant);
  }
  return fmt::format("{} takes no argument \"{}\"", path_of(command), without_secrets(extra));
}

// The parser's error, in our words.
std::string explain_parse_error(const CLI::ParseError& error) {
  const std::string text = error.what();
  constexpr std::string_view kNotConverted = "Could not convert: ", kIs = " = ";
  if (text.starts_with(kNotConverted) && text.find(kIs) != std::string::npos) {
    const auto split = text.find(kIs);
    return fmt::format("{}: \"{}\" is not a valid number here",
                       text.substr(kNotConverted.size(), split - kNotConverted.size()),
                       text.substr(split + kIs.size()));
  }
  const auto colon = text.find(':');
  if (text.ends_with("missing") && colon != std::string::npos) return text.substr(0, colon) + " needs a value";
  return text;
}

int usage_error(const Program& program, const CLI::App& app, const std::string& message) {
  const std::string path = path_of(chosen_command(app));
  program.err << "hapax: " << escape_controls(message) << "\n"
              << "Run `hapax " << (path.empty() ? "" : path + " ") << "--help` to see its commands and flags.\n";
  return kUsage;
}

int exit_code_of(const Failure& failure) { return failure.safe_to_retry() ? kUnavailable : kFailed; }

int exit_code_of(const RemoteRefusal& refusal) {
  if (refusal.word() == "InvalidRequest" || refusal.word() == "InvalidJson") return kUsage;
  return refusal.word().ends_with("NotFound") ? kNotFound : kRefused;
}

int run_action(const Action& action, const Program& program) {
  const auto fail = [&](const std::exception& error, int exit_code) {
    program.err << "hapax: " << escape_controls(error.what()) << std::endl;
    return exit_code;
  };
  try {
    return action();
  } catch (const CommandError& error) {
    return fail(error, error.exit_code());
  } catch (const ConfigError& error) {
    return fail(error, kUsage);
  } catch (const BadUrl& error) {
    return fail(error, kUsage);
  } catch (const InvalidField& error) {
    return fail(std::runtime_error(error.sentence()), kUsage);
  } catch (const RemoteRefusal& refusal) {
    return fail(refusal, exit_code_of(refusal));
  } catch (const DecidedByFile& refusal) {
    return fail(refusal, kRefused);
  } catch (const Failure& failure) {
    return fail(failure, exit_code_of(failure));
  } catch (const std::exception& error) {
    return fail(error, kFailed);
  }
}

void add_commands(CLI::App& app, const Program& program, Action& action) {
  for (const auto add :
       {add_serve,   add_submit,     add_start,    add_get,     add_list,    add_history, add_cancel, add_retry,
        add_signal,  add_resume,     add_fork,     add_explain, add_release, add_queues,  add_types,  add_activities,
        add_runs,    add_trigger,    add_backfill, add_event,   add_work,    add_top,     add_bench,  add_doctor,
        add_migrate, add_completion, add_version,  add_why,     add_outbox,  add_effects, add_update, add_workers}) {
    add(app, program, action);
  }
}

// `hapax help queues set` is `hapax queues set --help`.
void add_help(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("help", "List the commands, or show the flags of one");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("COMMAND", *words, "The command, as in: hapax help queues set")->type_name("");
  command->callback([&app, &program, &action, words] {
    action = [&app, &program, words] {
      CLI::App* about = &app;
      for (const std::string& word : *words) {
        const auto commands = about->get_subcommands([](CLI::App*) { return true; });
        const auto found = std::find_if(commands.begin(), commands.end(),
                                        [&](const CLI::App* each) { return each->get_name() == word; });
        if (found == commands.end()) {
          std::vector<std::string> names;
          for (const auto* each : commands) names.push_back(each->get_name());
          throw CommandError(kUsage, fmt::format("unknown command \"{}\"{}", word, suggestion(word, names)));
        }
        about = *found;
      }
      const std::string path = path_of(*about);
      // Not App::help(), which describes the chosen command: that is this one.
      program.out << about->get_formatter()->make_help(about, path.empty() ? "hapax" : "hapax " + path,
                                                       CLI::AppFormatMode::Normal);
      return kOk;
    };
  });
}

// One subcommand and no more, so that `hapax submit list` submits a task of type "list". Unknown arguments are kept, to
// be explained.
void settle(CLI::App& app) {
  app.allow_extras();
  app.require_subcommand(0, 1);
  for (auto* command : app.get_subcommands([](CLI::App*) { return true; })) settle(*command);
}

}  // namespace

int run_cli(std::vector<std::string> arguments, const Program& program) {
  CLI::App app("Hapax: a durable task queue. Say it twice, it happens once.", "hapax");
  app.set_version_flag("--version", "hapax " + program.version);
  app.set_help_flag("-h,--help", "Print this text");
  Action action;
  add_commands(app, program, action);
  add_help(app, program, action);
  app.footer(std::string(kFooter));  // after the commands, which would inherit it
  settle(app);

  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::Success& e) {
    return app.exit(e, program.out, program.err) == 0 ? kOk : kFailed;
  } catch (const CLI::ParseError& e) {
    // A misspelt flag is the likelier reason for a missing one.
    for (const std::string& extra : app.remaining(true)) {
      if (extra.starts_with('-') && extra.size() > 1) return usage_error(program, app, explain_extra(app, extra));
    }
    return usage_error(program, app, explain_parse_error(e));
  }
  const auto extras = app.remaining(true);
  if (!extras.empty()) return usage_error(program, app, explain_extra(app, extras.front()));
  if (!action) {
    program.err << app.help();
    return kUsage;
  }
  // The output may be shown on a terminal later.
  const CLI::Option* json = chosen_command(app).get_option_no_throw("--json");
  std::optional<TerminalFilter> safe_json;
  if (json && json->count() > 0) safe_json.emplace(program.out);
  return run_action(action, program);
}

}  // namespace hapax
