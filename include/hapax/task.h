// A task from both ends: the handle of who submitted it, the context of who runs it.
#pragma once

#include <chrono>
#include <cstdint>
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

// A submitted task. Copies are cheap and mean the same task; good as long as its App.
class Handle {
 public:
  // The task's id, a UUIDv7.
  std::string id() const;

  // Whether this submission created it; false: it was there before, and `deduplicated_from` says since when.
  bool created() const;
  std::optional<std::chrono::system_clock::time_point> deduplicated_from() const;

  // As it is now: "pending", "running", "completed", "failed", "cancelled", "timed_out".
  std::string status() const;

  // Waits until the task is closed, at most so long. False: it is still open.
  bool wait_for(Milliseconds duration) const;

  // Waits for the result, as long as it takes, and gives it. Throws TaskFailed if there will be none.
  template <class Result>
  Result result() const {
    return from_json<Result>(result_json());
  }
  std::string result_json() const;  // the JSON text; empty if the task returned nothing

  // Asks for the task to be cancelled: a pending one is at once, a running one hears of it. The request key makes a
  // repeated call one cancel. True if this changed anything. retry() gives a failed one new attempts.
  bool cancel(std::string_view request_key) const;
  bool retry(std::string_view request_key) const;

  // The receipt of the submission, as the HTTP API would give it.
  std::string receipt_json() const;

 private:
  friend class App;
  explicit Handle(std::shared_ptr<detail::HandleState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::HandleState> state_;
};

// What a handler may ask about the attempt it is. Good while the handler runs.
class TaskContext {
 public:
  std::string id() const;
  std::string type() const;
  std::int32_t attempt() const;  // 1 is the first

  // Stable over all attempts of this task: hand it to the outside world as its idempotency key, so that a charge that
  // was made by an attempt which then died is not made again by the next.
  std::string effect_key() const;

  // Somebody asked for this task to be cancelled, its attempt's time is over, or the lease was lost. Long handlers look
  // now and then, clean up, and throw hapax::Cancelled; whatever they return after a lost lease is refused.
  bool cancel_requested() const;

 private:
  friend class detail::RunningTask;
  explicit TaskContext(const detail::RunningTask& task) : task_(task) {}

  const detail::RunningTask& task_;
};

}  // namespace hapax
