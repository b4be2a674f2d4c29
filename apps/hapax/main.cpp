#include <unistd.h>

#include <iostream>

#include "cli/cli.h"
#include "open_store.h"

int main(int argc, char** argv) {
  const hapax::Program program{.version = HAPAX_VERSION,
                               .environment = hapax::process_environment(),
                               .out = std::cout,
                               .err = std::cerr,
                               .terminal = isatty(STDOUT_FILENO) == 1,
                               .open_store = hapax::open_store};
  return hapax::run_cli({argv + 1, argv + argc}, program);
}
