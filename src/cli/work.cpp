#include <fmt/format.h>
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <mutex>
#include <ostream>
#include <set>
#include <thread>

#include "cli/child_process.h"
#include "cli/command.h"
#include "cli/exec_handler.h"
#include "cli/handler_environment.h"
#include "cli/paint.h"
#include "cli/secret_file.h"
#include "cli/signals.h"
#include "cli/submission_flags.h"
#include "cli/target.h"
#include "core/json_writer.h"
#include "sdk/app_state.h"
#include "sdk/own_origin.h"
#include "sdk/worker.h"

namespace hapax {

namespace {

struct WorkFlags {
  TargetFlags target;
  std::string command, name, lease = "60s";
  std::vector<std::string> queues, types, variables;
  std::size_t concurrency = 1;
  bool once = false;
  std::optional<std::string> until_idle;
};

Duration require_duration(const std::string& flag, const std::string& text, Duration least) {
  const auto duration = parse_duration(text);
  if (!duration || *duration < least) {
    throw CommandError(
        kUsage, fmt::format("{} must be a duration of at least {}, not \"{}\"", flag, format_duration(least), text));
  }
  return *duration;
}

// The output while it works: one line for each attempt.
class AttemptLog {
 public:
  AttemptLog(const Program& program, bool json) : program_(program), json_(json), paint_(Paint::of(program)) {}

  void ended(const detail::AttemptEnd& end) {
    const Execution& task = end.task.execution;
    const Words words = words_for(end);
    const auto ms = std::chrono::duration_cast<Duration>(end.took);
    std::lock_guard lock(mutex_);
    const bool is_refused = end.answer != detail::AttemptEnd::Answer::accepted;
    const bool is_snoozed = std::holds_alternative<Report::Snoozed>(end.report.outcome);
    ++(is_refused ? refused_ : is_snoozed ? snoozed_ : words.why.empty() ? completed_ : failed_);
    if (is_refused && end.answer != detail::AttemptEnd::Answer::not_asked) {
      refusal_ = fmt::format("task {} attempt {}: {}", task.id.to_string(), task.attempt, words.why);
    }
    if (json_) {
      JsonWriter line;
      line.begin_object().key("id").string(task.id.to_string()).key("type").string(task.type);
      line.key("attempt").integer(task.attempt).key("outcome").string(words.how);
      if (!words.why.empty()) line.key("message").string(words.why);
      program_.out << line.key("ms").integer(ms.count()).end_object().text() << std::endl;
      return;
    }
    program_.out << fmt::format("{} {} attempt {} {} in {}{}", task.id.to_string(), printable(task.type), task.attempt,
                                paint_(words.colour, words.how), format_age(ms),
                                words.why.empty() ? "" : ": " + printable(words.why))
                 << std::endl;
  }

  // Why the last lost report was lost: refused, or not delivered. Empty: none was lost.
  std::string refusal() const { return refusal_; }

  std::string summary() const {
    std::string text = fmt::format("{} completed, {} failed attempts", completed_, failed_);
    if (snoozed_ > 0) text += fmt::format(", {} snoozed", snoozed_);
    if (refused_ > 0) text += fmt::format(", {} whose report was not accepted", refused_);
    return text;
  }

 private:
  struct Words {
    std::string_view how;
    Colour colour;
    std::string why;
  };

  static Words words_for(const detail::AttemptEnd& end) {
    using Answer = detail::AttemptEnd::Answer;
    switch (end.answer) {
      case Answer::accepted: break;
      case Answer::lease_lost:
        return {"refused", Colour::red, "the lease was lost: another attempt has the task, or it is closed"};
      case Answer::unreachable:
        return {"not reported", Colour::red,
                "the report could not be sent; another attempt follows when the lease ends"};
      case Answer::not_asked: return {"timed out", Colour::red, "it was ended at its time limit"};
    }
    if (const auto* snoozed = std::get_if<Report::Snoozed>(&end.report.outcome)) {
      return {"snoozed", Colour::yellow, "again in " + format_duration(snoozed->by)};
    }
    const auto* failed = std::get_if<Report::Failed>(&end.report.outcome);
    if (!failed) return {"completed", Colour::green, ""};
    if (failed->error.type == "Cancelled") return {"cancelled", Colour::yellow, failed->error.message};
    return {failed->retryable ? "failed" : "failed for good", Colour::red, failed->error.message};
  }

  const Program& program_;
  const bool json_;
  const Paint paint_;
  std::mutex mutex_;
  std::int64_t completed_ = 0, failed_ = 0, snoozed_ = 0, refused_ = 0;
  std::string refusal_;
};

class ExecHandler {
 public:
  ExecHandler(const WorkFlags& flags, Variables environment, std::atomic<bool>& stop)
      : flags_(flags), environment_(std::move(environment)), stop_(stop) {}

  std::string operator()(TaskContext& task, const std::string& input) {
    if (flags_.once) stop_ = true;
    ChildCall call;
    call.command = flags_.command;
    call.input = input;
    call.environment = environment_;
    call.environment.insert_or_assign("HAPAX_EFFECT_KEY", task.effect_key());
    call.environment.insert_or_assign("HAPAX_ATTEMPT", std::to_string(task.attempt()));
    call.environment.insert_or_assign("HAPAX_TASK_ID", task.id());
    call.environment.insert_or_assign("HAPAX_TASK_TYPE", task.type());
    call.cancelled = [&task] { return task.cancel_requested(); };
    return result_of(run_child(call));
  }

 private:
  const WorkFlags& flags_;
  const Variables environment_;
  std::atomic<bool>& stop_;
};

// The first signal drains, the second one ends at once.
class DrainOnSignal {
 public:
  DrainOnSignal(EndSignals& signals, const Program& program, std::atomic<bool>& stop)
      : thread_([this, &signals, &program, &stop] {
          const int signal = signals.wait();
          heard_ = true;
          if (!over_) {
            program.err << fmt::format("stopping on signal {}: finishing what runs; a second one ends at once", signal)
                        << std::endl;
          }
          stop = true;
          over_.wait(false);  // this thread gets the second signal, too
        }) {}

  ~DrainOnSignal() {
    over_ = true;
    if (!heard_) pthread_kill(thread_.native_handle(), SIGTERM);
    over_.notify_all();
    thread_.join();
  }

 private:
  std::atomic<bool> heard_ = false, over_ = false;
  std::thread thread_;
};

// The queues to claim from: those named, else those of the named types, else the default one.
std::vector<std::string> queues_of(const WorkFlags& flags, const Target& target) {
  std::set<std::string> queues(flags.queues.begin(), flags.queues.end());
  if (queues.empty()) {
    for (const std::string& type : flags.types) {
      queues.insert(target.engine->type(target.name_space, type).settings.queue.value_or("default"));
    }
  }
  if (queues.empty()) queues.insert("default");
  return {queues.begin(), queues.end()};
}

WorkOptions check(const WorkFlags& flags) {
  if (flags.concurrency < 1 || flags.concurrency > 1000)
    throw CommandError(kUsage, "--concurrency must be from 1 to 1000");
  if (flags.once && flags.concurrency > 1) throw CommandError(kUsage, "--once runs one task: leave --concurrency out");
  for (const std::string& queue : flags.queues) require_name("--queue", queue);
  for (const std::string& type : flags.types) require_name("--type", type);
  if (!flags.name.empty()) require_name("--name", flags.name);
  WorkOptions options;
  options.threads = flags.concurrency;
  options.name = flags.name;
  options.lease = require_duration("--lease", flags.lease, std::chrono::seconds(1));
  options.handle_signals = false;
  if (flags.until_idle) options.until_idle_for = require_duration("--until-idle", *flags.until_idle, Duration(0));
  return options;
}

Variables environment_for(const WorkFlags& flags, const Program& program) {
  try {
    return handler_environment(program.environment, flags.variables);
  } catch (const std::invalid_argument& error) {
    throw CommandError(kUsage, fmt::format("--env {}", error.what()));
  }
}

// The types to run, all if none is named: the worker gives back all others.
void declare_handler(detail::AppState& app, const WorkFlags& flags, const WorkOptions& options,
                     const ExecHandler& handler) {
  const detail::DeclaredTask task{TaskOptions{options.queues.front()}, handler};
  if (flags.types.empty()) return app.declare_any(task);
  const std::set<std::string> types(flags.types.begin(), flags.types.end());
  for (const std::string& type : types) app.declare(type, task, nullptr);
}

int work(const Program& program, const WorkFlags& flags) {
  WorkOptions options = check(flags);
  Variables environment = environment_for(flags, program);
  hide_environment();
  EndSignals signals;  // before any thread
  const Target target = flags.target.open_or_create(program);
  options.queues = queues_of(flags, target);
  target.engine->queue(target.name_space, options.queues.front());  // report a wrong address or token at once
  AttemptLog log(program, flags.target.json());
  detail::AppState app(Opened{target.engine, {}, {}}, target.name_space);
  declare_handler(app, flags, options, ExecHandler(flags, std::move(environment), app.stop_requested));
  if (!flags.target.json()) {
    program.err << fmt::format("working on {} at {}", fmt::join(options.queues, ", "), target.shown) << std::endl;
  }
  {
    detail::Worker worker(
        app, options, [&log](const detail::AttemptEnd& end) { log.ended(end); }, detail::own_origin("hapax work"));
    const DrainOnSignal drain(signals, program, app.stop_requested);
    worker.run();
  }
  if (!flags.target.json()) program.err << log.summary() << std::endl;
  if (flags.once && !log.refusal().empty())
    throw CommandError(kFailed, "the report was not accepted: " + log.refusal());
  return kOk;
}

}  // namespace

void add_work(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("work", "Run tasks with any program as their handler");
  command->footer(
      "The handler is run by /bin/sh, once for each attempt. It gets the input as JSON on standard input, and "
      "HAPAX_TASK_ID,\n"
      "HAPAX_TASK_TYPE, HAPAX_ATTEMPT and HAPAX_EFFECT_KEY in its environment. What it prints is the result. Exit code "
      "0 completes\n"
      "the task, 100 fails it for good, 101 runs it again after the time it printed (\"5m\") without costing an "
      "attempt, any other\n"
      "fails the attempt, which is retried; standard error is kept as the error.");
  auto flags = std::make_shared<WorkFlags>();
  const auto repeatable = CLI::MultiOptionPolicy::TakeAll;
  command->add_option("--exec", flags->command, "The handler: a shell command")->required()->type_name("CMD");
  command
      ->add_option("--queue", flags->queues,
                   "A queue to work on; repeatable (default: the types' queues, else default)")
      ->type_name("QUEUE")
      ->expected(1)
      ->multi_option_policy(repeatable);
  command
      ->add_option("--type", flags->types,
                   "A type that the handler runs; repeatable (default: all). Others are left for other workers")
      ->type_name("TYPE")
      ->expected(1)
      ->multi_option_policy(repeatable);
  command
      ->add_option(
          "--env", flags->variables,
          "A variable that the handler sees beside PATH, HOME, LANG and the like; repeatable: NAME passes this "
          "worker's own on, NAME=VALUE sets one")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(repeatable);
  command->add_option("--concurrency", flags->concurrency, "Handlers that run at once (default: 1)")->type_name("N");
  command->add_flag("--once", flags->once,
                    "Wait for one task, run it, and end; exit code 1 if its report was not accepted");
  command->add_option("--until-idle", flags->until_idle, "End when there was nothing to do for this long")
      ->type_name("DURATION");
  command
      ->add_option("--lease", flags->lease, "A worker without a heartbeat for this long counts as dead (default: 60s)")
      ->type_name("DURATION");
  command->add_option("--name", flags->name, "Of this worker, shown with its tasks (default: host and pid)")
      ->type_name("NAME");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return work(program, *flags); }; });
}

}  // namespace hapax
