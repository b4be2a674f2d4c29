#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/completion_script.h"
#include "config/nearest.h"

namespace hapax {

namespace {

int print_completion(const Program& program, const CLI::App& app, const std::string& shell) {
  const auto commands = completion_commands(app);
  if (shell == "bash") {
    program.out << bash_completion(commands) << std::flush;
  } else if (shell == "zsh") {
    program.out << zsh_completion(commands) << std::flush;
  } else if (shell == "fish") {
    program.out << fish_completion(commands) << std::flush;
  } else {
    const std::vector<std::string> known{"bash", "zsh", "fish"};
    const std::string meant = suggestion(shell, known);
    throw CommandError(kUsage, fmt::format("there is no completion for \"{}\"{}", shell,
                                           meant.empty() ? "; there is for bash, zsh and fish" : meant));
  }
  return kOk;
}

}  // namespace

void add_completion(CLI::App& app, const Program& program, Action& action) {
  auto* command =
      app.add_subcommand("completion", "Print the completion script of a shell: eval \"$(hapax completion bash)\"");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->type_name("bash|zsh|fish");
  command->callback([&app, &program, &action, shell] {
    action = [&app, &program, shell] { return print_completion(program, app, *shell); };
  });
}

}  // namespace hapax
