// The command line: `hapax COMMAND …`.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace hapax {

// Runs the command that the arguments (without the program's name) choose, and returns the exit code. Never throws:
// every error is one line on program.err.
int run_cli(std::vector<std::string> arguments, const Program& program);

}  // namespace hapax
