// What the commands share: the program they belong to, and how each declares itself.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "config/config.h"
#include "store/store.h"

namespace CLI {
class App;
}

namespace hapax {

// Exit codes.
constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;  // the command line or the configuration is wrong

// What a command gets from outside. The stores are known only to whoever makes the program.
struct Program {
  std::string version;
  Environment environment;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // `out` is read by a person

  // Opens a store by its URL. Throws ConfigError for a URL that no store takes, Failure if the store cannot be opened.
  std::function<std::unique_ptr<Store>(const std::string& url)> open_store;
};

// The command that the arguments choose; it answers with the exit code.
using Action = std::function<int()>;

// Each adds its command; parsing it sets `action`. The program and the action must outlive the app.
void add_serve(CLI::App& app, const Program& program, Action& action);
void add_migrate(CLI::App& app, const Program& program, Action& action);
void add_version(CLI::App& app, const Program& program, Action& action);

}  // namespace hapax
