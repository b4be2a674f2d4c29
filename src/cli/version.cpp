#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"

namespace hapax {

void add_version(CLI::App& app, const Program& program, Action& action) {
  app.add_subcommand("version", "Print the version")->callback([&program, &action] {
    action = [&program] {
      program.out << "hapax " << program.version << std::endl;
      return kOk;
    };
  });
}

}  // namespace hapax
