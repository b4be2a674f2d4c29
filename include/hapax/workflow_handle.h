// A workflow from outside: the declared workflow as a value, which starts it; the starter's handle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hapax/detail/declared.h"
#include "hapax/detail/durations.h"
#include "hapax/detail/pointers.h"
#include "hapax/detail/std_function.h"
#include "hapax/error.h"
#include "hapax/json.h"
#include "hapax/options.h"
#include "hapax/signal.h"

namespace hapax {

struct Step;

namespace detail {
class WorkflowHandleState;
}

// A started workflow whose result type is not known here. Copies are cheap and refer to the same workflow; valid as
// long as its App. It stands for the workflow id: for the latest run at the time of a call.
class AnyWorkflowHandle {
 public:
  std::string workflow_id() const;

  // The run that this start created or found; created() says which, deduplicated_from() says since when it exists.
  std::string run_id() const;
  bool created() const;
  std::optional<std::chrono::system_clock::time_point> deduplicated_from() const;

  // Its status now: "pending", "running", "suspended" (it waits), "completed", "failed", "cancelled", "timed_out".
  std::string status() const;

  // Waits until the workflow is closed, over all runs that it continues as; at most this long. False: it is still open.
  bool wait_for(Milliseconds duration) const;

  // Waits for the result, as long as it takes, and returns it. Throws TaskFailed with the code WorkflowFailed,
  // WorkflowCancelled or WorkflowTimedOut if there will be none.
  template <class Result>
  Result result() const {
    return from_json<Result>(result_json());
  }
  std::string result_json() const;  // the JSON text; empty if the workflow returned nothing

  // Calls `done` once when the workflow is closed, with a handle whose result() does not wait: it returns the result,
  // or throws why there is none, also if the start failed. `done` runs on one of the app's threads, so it must not
  // block or throw, but it may start the next workflow. An app that is closed before calls it first.
  void when_closed(std::function<void(AnyWorkflowHandle)> done) const;

  // Operations, each under your request key: the same key again does nothing more.
  //
  // cancel() includes the open steps and children. resume() lets a cancelled, failed or timed out workflow continue
  // from its last completed step. True if this changed anything.
  bool cancel(const RequestKey& request) const;
  bool resume(const RequestKey& request) const;

  // Asks the workflow to end: its code gets CancelRequested before its next step, or where it waits for something else
  // than tasks, and may compensate. With a grace, it is cancelled in any case when that is over. The reason is any JSON
  // value. False if it was closed or asked before.
  template <class Reason>
  bool request_cancel(const Reason& reason, const RequestKey& request,
                      std::optional<Milliseconds> grace = std::nullopt) const {
    return request_cancel_json(to_json(reason), request, grace);
  }

  // What the code has published so far (Context::publish), as a JSON object; or one value of it, if it is there.
  template <class T>
  std::optional<T> value(std::string_view name) const {
    const std::optional<std::string> json = value_json(name);
    return json ? std::optional<T>(from_json<T>(*json)) : std::nullopt;
  }
  std::string values_json() const;
  std::optional<std::string> value_json(std::string_view name) const;

  // A new workflow with the steps before `from_step` of this one; the rest runs again. Without its own id, it gets one
  // made from the request key.
  AnyWorkflowHandle fork(std::int32_t from_step, const RequestKey& request, std::string_view workflow_id = {}) const;

  // Delivers a signal to an open workflow; throws Error with the code WorkflowClosed if it is closed.
  template <class T>
  void signal(const Signal<T>& signal, const std::type_identity_t<detail::Value<T>>& payload,
              const RequestKey& request) const {
    send_signal(signal.name, to_json(payload), request);
  }
  template <class T>
    requires std::is_void_v<T>
  void signal(const Signal<T>& signal, const RequestKey& request) const {
    send_signal(signal.name, {}, request);
  }
  template <class Payload = std::nullptr_t>
  void signal(std::string_view name, const Payload& payload, const RequestKey& request) const {
    send_signal(name, to_json(payload), request);
  }

  // Asks the code of an open workflow, and waits for its answer (Context::on). Under the same request key it is asked
  // once, and the answer is the same, whatever dies meanwhile. Throws TaskFailed with the code UpdateRefused if the
  // code refuses, Error with the code WorkflowClosed if the workflow is closed before it answers.
  //
  //   const int left = handle.update(reserve_more, 3, hapax::request("more-1"));
  template <class Question, class Answer>
  Answer update(const Update<Question, Answer>& update, const std::type_identity_t<detail::Value<Question>>& question,
                const RequestKey& request) const {
    return from_json<Answer>(update_json(update.name, to_json(question), request));
  }
  template <class Answer = void, class Question = std::nullptr_t>
  Answer update(std::string_view name, const Question& question, const RequestKey& request) const {
    return from_json<Answer>(update_json(name, to_json(question), request));
  }
  std::string update_json(std::string_view name, const std::string& question_json, const RequestKey& request) const;

  // What its code has asked for, step by step: see listing.h.
  std::vector<Step> steps() const;

  // Its commands and outcomes, as in GET /v1/workflows/{workflow_id}/history: a JSON array of events.
  std::string history_json() const;

  // The history with the type and input of its run, for hapax::testing::replay(): what `hapax history --export` writes.
  std::string export_json() const;

 private:
  friend class App;
  explicit AnyWorkflowHandle(std::shared_ptr<detail::WorkflowHandleState> state) : state_(std::move(state)) {}

  void send_signal(std::string_view name, const std::string& payload_json, const RequestKey& request) const;
  bool request_cancel_json(const std::string& reason_json, const RequestKey& request,
                           std::optional<Milliseconds> grace) const;

  std::shared_ptr<detail::WorkflowHandleState> state_;
};

// A started workflow that returns a T.
template <class T>
class WorkflowHandle : public AnyWorkflowHandle {
 public:
  // For a handle that was found by its id: `WorkflowHandle<Receipt>(app.find_workflow("order-456"))`.
  explicit WorkflowHandle(AnyWorkflowHandle handle) : AnyWorkflowHandle(std::move(handle)) {}

  T result() const { return AnyWorkflowHandle::result<T>(); }
  template <class Other>
  T result() const {
    static_assert(std::is_same_v<Other, T>, "hapax: this handle knows the type of its result: write handle.result()");
    return AnyWorkflowHandle::result<T>();
  }

  void when_closed(std::function<void(WorkflowHandle)> done) const {
    AnyWorkflowHandle::when_closed(
        [done = std::move(done)](AnyWorkflowHandle handle) { done(WorkflowHandle(std::move(handle))); });
  }
  WorkflowHandle fork(std::int32_t from_step, const RequestKey& request, std::string_view workflow_id = {}) const {
    return WorkflowHandle(AnyWorkflowHandle::fork(from_step, request, workflow_id));
  }
};

// A workflow type: its name, its input and its result (void: none). What Task is for tasks: see task.h.
//
//   auto process = app.workflow("process_order", process_order);
//   hapax::WorkflowHandle<Receipt> run = process.start("order-456", order);
template <class Input, class Result>
class Workflow : public detail::Declared {
 public:
  explicit Workflow(std::string name) : Declared(std::move(name), {}) {}

  // Starts it, as App::start() does.
  WorkflowHandle<Result> start(std::string_view workflow_id, const detail::Value<Input>& input,
                               const SubmitOptions& options = {}) const {
    return WorkflowHandle<Result>(start_json(workflow_id, to_json(input), options));
  }
  WorkflowHandle<Result> start(std::string_view workflow_id, const SubmitOptions& options = {}) const
    requires std::is_void_v<Input>
  {
    return WorkflowHandle<Result>(start_json(workflow_id, {}, options));
  }

  // Without waiting, as App::start_async() does.
  void start_async(std::string_view workflow_id, const detail::Value<Input>& input, const SubmitOptions& options,
                   std::function<void(WorkflowHandle<Result>)> started) const {
    start_json_async(workflow_id, to_json(input), options, [started = std::move(started)](AnyWorkflowHandle handle) {
      started(WorkflowHandle<Result>(std::move(handle)));
    });
  }

  // Inside a transaction of the caller's own, as App::start_in() does: a sqlite3* or a PGconn*.
  template <class Connection>
  WorkflowHandle<Result> start_in(Connection* connection, std::string_view workflow_id,
                                  const detail::Value<Input>& input, const SubmitOptions& options = {}) const {
    return WorkflowHandle<Result>(start_json_in(connection, workflow_id, to_json(input), options));
  }

  // The one of that id, wherever it was started. Throws WorkflowNotFound if there is none.
  WorkflowHandle<Result> find(std::string_view workflow_id) const {
    return WorkflowHandle<Result>(find_workflow(workflow_id));
  }

 private:
  friend class App;
  Workflow(std::string name, std::weak_ptr<detail::AppState> app) : Declared(std::move(name), std::move(app)) {}
};

}  // namespace hapax
