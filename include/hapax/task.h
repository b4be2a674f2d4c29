// A task from both ends: the submitter's handle, the handler's context.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hapax/error.h"
#include "hapax/json.h"
#include "hapax/options.h"

namespace hapax {

namespace detail {
class AppState;
class HandleState;
class RunningTask;
}  // namespace detail

// A submitted task. Copies are cheap and refer to the same task; valid as long as its App.
class Handle {
 public:
  // The task's id, a UUIDv7.
  std::string id() const;

  // Whether this submission created it; false: it existed before, and `deduplicated_from` says since when.
  bool created() const;
  std::optional<std::chrono::system_clock::time_point> deduplicated_from() const;

  // Its status now: "pending", "running", "completed", "failed", "cancelled", "timed_out".
  std::string status() const;

  // Waits until the task is closed, at most this long. False: it is still open.
  bool wait_for(Milliseconds duration) const;

  // Waits for the result, as long as it takes, and returns it. Throws TaskFailed if there will be none.
  template <class Result>
  Result result() const {
    return from_json<Result>(result_json());
  }
  std::string result_json() const;  // the JSON text; empty if the task returned nothing

  // Cancels the task: a pending one at once, a running one at its next heartbeat. The request key makes a repeated call
  // one cancel. True if this changed anything. retry() gives a failed one new attempts.
  bool cancel(std::string_view request_key) const;
  bool retry(std::string_view request_key) const;

  // The receipt of the submission, as the HTTP API would give it.
  std::string receipt_json() const;

 private:
  friend class App;
  explicit Handle(std::shared_ptr<detail::HandleState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::HandleState> state_;
};

// What a handler may ask about its attempt. Valid while the handler runs.
class TaskContext {
 public:
  std::string id() const;
  std::string type() const;
  std::int32_t attempt() const;  // 1 is the first

  // The same over all attempts of this task: pass it to other systems as their idempotency key, so that the next
  // attempt does not repeat a charge made by an attempt that died.
  std::string effect_key() const;

  // What the submission sent along (SubmitOptions::headers), or what the workflow's did.
  std::map<std::string, std::string> headers() const;

  // The task was cancelled, its attempt's time is over, or the lease was lost. Long handlers check now and then, clean
  // up, and throw hapax::Cancelled; whatever they return after a lost lease is refused.
  bool cancel_requested() const;

 private:
  friend class detail::RunningTask;
  explicit TaskContext(const detail::RunningTask& task) : task_(task) {}

  const detail::RunningTask& task_;
};

}  // namespace hapax
