#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/secret_file.h"
#include "cli/terminal_text.h"
#include "open/open_engine.h"

int main(int argc, char** argv) {
  std::optional<hapax::TerminalFilter> safe_out, safe_err;
  if (isatty(STDOUT_FILENO) == 1) safe_out.emplace(std::cout);
  if (isatty(STDERR_FILENO) == 1) safe_err.emplace(std::cerr);
  const hapax::Program program{.version = HAPAX_VERSION,
                               .environment = hapax::process_environment(),
                               .in = std::cin,
                               .out = std::cout,
                               .err = std::cerr,
                               .terminal = isatty(STDOUT_FILENO) == 1,
                               .input_terminal = isatty(STDIN_FILENO) == 1,
                               .open_store = hapax::open_store,
                               .open_engine = [](const std::string& url, hapax::OpenEngineOptions options) {
                                 return hapax::open_engine(url, std::move(options)).engine;
                               }};
  std::vector<std::string> arguments(argv + 1, argv + argc);
  hapax::hide_arguments(argc, argv);
  return hapax::run_cli(std::move(arguments), program);
}
