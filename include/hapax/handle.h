// The submitter's end of a task.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hapax/detail/durations.h"
#include "hapax/detail/pointers.h"
#include "hapax/error.h"
#include "hapax/json.h"
#include "hapax/options.h"

namespace hapax {

namespace detail {
class HandleState;
}

// A submitted task whose result type is not known here: it was submitted or found by its name. Copies are cheap and
// refer to the same task; valid as long as its App.
class AnyHandle {
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
  bool cancel(const RequestKey& request) const;
  bool retry(const RequestKey& request) const;

  // The receipt of the submission, as the HTTP API would give it.
  std::string receipt_json() const;

 private:
  friend class App;
  explicit AnyHandle(std::shared_ptr<detail::HandleState> state) : state_(std::move(state)) {}

  std::shared_ptr<detail::HandleState> state_;
};

// A submitted task that returns a T.
template <class T>
class Handle : public AnyHandle {
 public:
  // For a handle that was found by its id: `Handle<std::string>(app.find(id))`.
  explicit Handle(AnyHandle handle) : AnyHandle(std::move(handle)) {}

  T result() const { return AnyHandle::result<T>(); }
  template <class Other>
  T result() const {
    static_assert(std::is_same_v<Other, T>, "hapax: this handle knows the type of its result: write handle.result()");
    return AnyHandle::result<T>();
  }
};

}  // namespace hapax
