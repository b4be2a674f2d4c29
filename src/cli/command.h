// What the commands share: the program, their exit codes, and how each command declares itself.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>

#include "config/config.h"
#include "open/open_engine.h"
#include "store/store.h"

namespace CLI {
class App;
}

namespace hapax {

// Exit codes. docs/cli.md promises them to scripts.
constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;        // the command line or the configuration is wrong
constexpr int kNotFound = 3;     // no such task, workflow, activity, key, queue or type
constexpr int kRefused = 4;      // a conflict, or the operation is not allowed
constexpr int kUnavailable = 5;  // the store or the server does not answer; trying again may work
constexpr int kTaskFailed = 6;   // submit --wait, start --wait: it closed without a result

// A command that failed. what() is one line: what was wrong, and what to do.
class CommandError : public std::runtime_error {
 public:
  CommandError(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// What a command gets from outside, so that tests run it without a process.
struct Program {
  std::string version;
  Environment environment;
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;        // a person reads `out`
  bool input_terminal = false;  // a person can answer on `in`

  // Both throw BadUrl for an unknown URL, Failure if it cannot be opened.
  std::function<std::unique_ptr<Store>(const std::string& url, OpenStoreOptions options)> open_store;
  std::function<std::shared_ptr<Engine>(const std::string& url, OpenEngineOptions options)> open_engine;
};

// The chosen command; returns the exit code.
using Action = std::function<int()>;

// Each adds its command; parsing it sets `action`. The program and the action must outlive the app.
void add_serve(CLI::App& app, const Program& program, Action& action);
void add_migrate(CLI::App& app, const Program& program, Action& action);
void add_submit(CLI::App& app, const Program& program, Action& action);
void add_start(CLI::App& app, const Program& program, Action& action);
void add_get(CLI::App& app, const Program& program, Action& action);
void add_why(CLI::App& app, const Program& program, Action& action);
void add_list(CLI::App& app, const Program& program, Action& action);
void add_cancel(CLI::App& app, const Program& program, Action& action);
void add_retry(CLI::App& app, const Program& program, Action& action);
void add_history(CLI::App& app, const Program& program, Action& action);
void add_signal(CLI::App& app, const Program& program, Action& action);
void add_update(CLI::App& app, const Program& program, Action& action);
void add_resume(CLI::App& app, const Program& program, Action& action);
void add_fork(CLI::App& app, const Program& program, Action& action);
void add_explain(CLI::App& app, const Program& program, Action& action);
void add_release(CLI::App& app, const Program& program, Action& action);
void add_queues(CLI::App& app, const Program& program, Action& action);
void add_types(CLI::App& app, const Program& program, Action& action);
void add_activities(CLI::App& app, const Program& program, Action& action);
void add_runs(CLI::App& app, const Program& program, Action& action);
void add_trigger(CLI::App& app, const Program& program, Action& action);
void add_backfill(CLI::App& app, const Program& program, Action& action);
void add_event(CLI::App& app, const Program& program, Action& action);
void add_outbox(CLI::App& app, const Program& program, Action& action);
void add_effects(CLI::App& app, const Program& program, Action& action);
void add_work(CLI::App& app, const Program& program, Action& action);
void add_workers(CLI::App& app, const Program& program, Action& action);
void add_top(CLI::App& app, const Program& program, Action& action);
void add_bench(CLI::App& app, const Program& program, Action& action);
void add_doctor(CLI::App& app, const Program& program, Action& action);
void add_completion(CLI::App& app, const Program& program, Action& action);
void add_version(CLI::App& app, const Program& program, Action& action);

}  // namespace hapax
