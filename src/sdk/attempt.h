// A claimed attempt or turn; running a task's handler.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "sdk/declarations.h"

namespace hapax::detail {

class AppState;

inline constexpr std::string_view kCancelled = "Cancelled";  // the error type of a handler that noticed a cancel

// An attempt that this worker has a lease for.
class RunningTask {
 public:
  using Steady = std::chrono::steady_clock;

  // Just claimed. The app is that of the handler, if it may ask for it.
  explicit RunningTask(Claimed claimed, AppState* app = nullptr);

  TaskContext context() const { return TaskContext(*this); }

  // By the store's clock, as far as it is known here.
  Time now() const;

  // The engine ends the attempt by itself, and has done so or is about to.
  bool is_over() const { return Steady::now() >= ends_at; }

  AppState* const app;
  const Execution execution;
  const std::vector<Event> events;  // of a workflow: those that its last turn did not know
  const LeaseToken token;
  const Steady::time_point claimed_at;
  const Steady::time_point ends_at;  // by its timeout or deadline; never, if it has none
  std::atomic<bool> cancel_requested = false;

  // What the handler says while it runs, until it is sent. From any thread.
  void say_progress(std::string json) const;
  void say_line(std::string line) const;
  bool has_unsent_notes() const;
  void take_notes(Extension& extension);            // to send them
  void put_back_notes(const Extension& extension);  // they could not be sent

 private:
  mutable std::mutex notes_mutex_;
  mutable std::optional<std::string> progress_;
  mutable std::vector<std::string> log_;
  mutable std::size_t log_bytes_ = 0;
};

// The handler for tasks of the type; null if there is none.
const DeclaredTask* declared_for(const std::map<std::string, DeclaredTask>& tasks, const std::string& type);

// Runs the handler. There is always a report.
Report run_handler(const DeclaredTask& declared, RunningTask& task, const std::string& name_space);

}  // namespace hapax::detail
