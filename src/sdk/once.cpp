// App::once(): submits the task and claims it in the same commit, and runs it on the caller's thread.
#include "hapax/once.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/hex.h"
#include "sdk/app_state.h"
#include "sdk/attempt.h"
#include "sdk/report_lane.h"

namespace hapax {

namespace detail {

namespace {

constexpr std::string_view kType = "once";
constexpr Duration kLongestWait{5'000};  // until it is looked whether the runner has died, or the pause is over
constexpr Duration kShortestWait{50};

// Of this call: nobody else's submission gets its claim.
std::string worker_name() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  std::uint8_t bytes[8];
  fill_random(bytes, sizeof bytes);
  std::string name = "once/" + std::string(host).substr(0, 64) + "/" + std::to_string(getpid()) + "/";
  for (const std::uint8_t byte : bytes) append_hex(name, byte);
  return name;
}

// Renews the lease of a task while it runs.
class Heartbeat {
 public:
  Heartbeat(Engine& engine, RunningTask& task, std::string name_space, Duration lease)
      : engine_(engine), task_(task), name_space_(std::move(name_space)), lease_(lease), thread_([this] { keep(); }) {}
  ~Heartbeat() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    ending_.notify_all();
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void keep() {
    std::unique_lock lock(mutex_);
    while (!ending_.wait_for(lock, lease_ / 3, [this] { return ended_; })) {
      lock.unlock();
      beat();
      lock.lock();
    }
  }

  void beat() {
    Extension extension{task_.token, lease_, name_space_};
    task_.take_notes(extension);
    try {
      std::vector<Extension> extensions{extension};
      const auto outcomes = await<std::vector<ExtendOutcome>>(
          [&](auto reply) { engine_.heartbeat(std::move(extensions), std::move(reply)); });
      if (!outcomes.at(0).ok || outcomes.at(0).cancel_requested) task_.cancel_requested = true;
    } catch (const std::exception&) {
      task_.put_back_notes(extension);  // the next one tries again; the lease says how long that may go on
    }
  }

  Engine& engine_;
  RunningTask& task_;
  const std::string name_space_;
  const Duration lease_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::thread thread_;
};

// What a task that is closed gives to all who call with its key.
std::string result_of(const Execution& execution) {
  const AttemptError error = execution.error.value_or(AttemptError{});
  switch (execution.status) {
    case Status::completed: return execution.result.value_or("");
    case Status::cancelled:
      throw TaskFailed("TaskCancelled", error.type, error.message.empty() ? "it was cancelled" : error.message);
    case Status::timed_out: throw TaskFailed("TaskTimedOut", error.type, error.message);
    default: throw TaskFailed("TaskFailed", error.type, error.message);
  }
}

struct Ran {
  bool is_accepted = false;
  std::string result;
};

// Runs the handler under the claim and reports. What the handler throws ends the task for this key's callers until one
// calls again, and is thrown here as it is.
Ran run_here(AppState& app, const Handler& handler, Execution claimed, Duration lease) {
  RunningTask task({std::move(claimed), {}});
  std::exception_ptr thrown;
  Ran ran;
  const DeclaredTask declared{{}, [&](TaskContext& context, const std::string& input_json) {
                                try {
                                  return ran.result = handler(context, input_json);
                                } catch (...) {
                                  thrown = std::current_exception();
                                  throw;
                                }
                              }};
  Report report = [&] {
    const Heartbeat heartbeat(app.engine(), task, app.name_space(), lease);
    return run_handler(declared, task, app.name_space());
  }();
  if (auto* failed = std::get_if<Report::Failed>(&report.outcome)) failed->retryable = false;
  if (std::holds_alternative<Report::Snoozed>(report.outcome)) {
    report.outcome = Report::Failed{{"Snooze", "a call of once() cannot be snoozed"}, false};
  }
  ReportLane reports(app.engine(), app.name_space(), lease);
  const auto outcomes = await<std::vector<FinishOutcome>>([&](auto reply) { reports.put(report, std::move(reply)); });
  ran.is_accepted = outcomes.at(0).accepted;
  if (thrown && ran.is_accepted) std::rethrow_exception(thrown);
  return ran;
}

Execution wait_for_end(AppState& app, const Execution& other) {
  Duration wait = kLongestWait;
  if (other.status == Status::pending) wait = std::clamp<Duration>(kLongestWait / 10, kShortestWait, kLongestWait);
  const auto found = await<std::optional<Execution>>(
      [&](auto reply) { app.engine().wait_closed(app.name_space(), other.id, wait, std::move(reply)); });
  return found.value_or(other);
}

}  // namespace

std::string once(AppState& app, std::string_view key, std::string_view type, const std::string& input_json,
                 const Handler& handler, const OnceOptions& options) {
  const std::string worker = worker_name();
  for (;;) {
    SubmitOptions submit{.key = std::string(key)};
    if (!options.queue.empty()) {
      submit.queue = options.queue;
    } else if (type == kType) {
      submit.queue = std::string(kType);
    }
    SubmitRequest request = to_request(app, type, input_json, submit);
    request.run_here = {worker, options.lease};
    auto results = await<std::vector<SubmitResult>>([&](auto reply) {
      app.tell_types();
      app.engine().submit(app.name_space(), {std::move(request)}, std::move(reply));
    });
    const auto received = received_or_refused(std::move(results.at(0)), Kind::task);
    if (const auto* refused = std::get_if<Error>(&received)) throw *refused;
    const Receipt& receipt = std::get<Receipt>(received);
    Execution execution = receipt.execution;
    if (receipt.claimed) {
      const Ran ran = run_here(app, handler, std::move(execution), options.lease);
      if (ran.is_accepted) return ran.result;
      continue;  // the lease was lost, and another has taken over: its result counts
    }
    if (receipt.result_expired) {
      throw Error("ResultExpired", "the call under this key was made, and its result is no longer kept");
    }
    if (!is_closed(execution.status)) execution = wait_for_end(app, execution);
    if (is_closed(execution.status)) return result_of(execution);
  }
}

}  // namespace detail

std::string App::once_json(std::string_view key, const void* address, std::string input_json,
                           const detail::Handler& handler, const OnceOptions& options) {
  const std::string type = !options.type.empty() ? options.type : live().find_type(address).value_or("once");
  return detail::translating([&] { return detail::once(live(), key, type, input_json, handler, options); });
}

}  // namespace hapax
