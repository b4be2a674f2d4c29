// The app: a store or a server opened by its URL, this program's tasks and workflows, and the verbs on them.
//
//   auto app = hapax::open("sqlite:orders.db");            // or memory:, postgres://…, s3://…, http://127.0.0.1:7373
//   auto charge = app.task("charge_card", charge_card, {.queue = "payments"});
//   auto handle = charge.submit(Order{456, 99.99}, hapax::key("charge-order-456"));
//   app.work();                                            // here, or in another process
//   std::string payment = handle.result();
//
// Say it twice, it happens once: the second submit with the same key returns the handle of the first one's task.
//
// An App is a handle to shared state: copies are cheap and refer to the same app. All methods may be called from any
// thread; task() and workflow() before work(). Every error is thrown as hapax::Error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/detail/declared.h"
#include "hapax/detail/durations.h"
#include "hapax/detail/function.h"
#include "hapax/detail/pointers.h"
#include "hapax/detail/std_function.h"
#include "hapax/error.h"
#include "hapax/handle.h"
#include "hapax/json.h"
#include "hapax/observe.h"
#include "hapax/once.h"
#include "hapax/options.h"
#include "hapax/task.h"
#include "hapax/workflow.h"
#include "hapax/workflow_handle.h"

namespace hapax {

namespace detail {
class AppState;
}

// See listing.h and trigger.h.
struct TaskFilter;
struct WorkflowFilter;
struct TaskInfo;
struct WorkflowInfo;
template <class Info>
class Listing;
class CronSchedule;
struct Published;
template <class Data>
class OnEvent;
namespace api {
struct CloudEvent;
}

// One submission of a batch.
struct BatchItem {
  std::string type;
  std::string input_json;
  SubmitOptions options;

  template <class Input>
  static BatchItem of(std::string type, const Input& input, SubmitOptions options = {}) {
    return {std::move(type), to_json(input), std::move(options)};
  }
  template <class Input, class Result>
  static BatchItem of(const Task<Input, Result>& task, const std::type_identity_t<detail::Value<Input>>& input,
                      SubmitOptions options = {}) {
    return {task.name(), to_json(input), std::move(options)};
  }
};

class App {
 public:
  // Declares a task: from now on work() runs `function` for tasks of that type. A task is any callable with at most two
  // parameters, in this order: a TaskContext&, and the input by value or by reference to const. Its return value is the
  // result. What is returned submits it, and is what workflows run.
  //
  //   std::string charge_card(const Order&);
  //   auto charge = app.task("charge_card", charge_card, {.queue = "payments", .max_attempts = 5});
  //   auto mail = app.task("send_mail", [](hapax::TaskContext& context, const Mail& mail) { … });
  //
  // A type is declared once, and a function under one name only: anything else throws Error.
  template <class Function>
  auto task(std::string type, Function function, TaskOptions options = {}) {
    const void* address = detail::address_of(function);
    declare(type, std::move(options), detail::handler_of(std::move(function)), address);
    if constexpr (detail::HasSignature<Function>) {
      return task_named<detail::FunctionInput<Function>, detail::FunctionResult<Function>>(std::move(type));
    }
  }
  // One whose type is known elsewhere (in a header that several programs share): the function must fit it.
  template <class Input, class Result, class Function>
  Task<Input, Result> task(const Task<Input, Result>& declared, Function function, TaskOptions options = {}) {
    static_assert(detail::fits<Function, Input, Result>(),
                  "hapax: this function does not take the input or does not return the result of the task");
    if constexpr (detail::fits<Function, Input, Result>())
      task(declared.name(), std::move(function), std::move(options));
    return task_named<Input, Result>(declared.name());
  }

  // A task that another program runs: its name, its input and its result (void: none).
  template <class Input, class Result>
  Task<Input, Result> task_named(std::string type) const {
    return Task<Input, Result>(std::move(type), state_);
  }

  // Declares a handler for every type without its own task: JSON text in, JSON text out ("" for nothing).
  App& any_task(detail::Handler handler, TaskOptions options = {}) {
    declare_any(std::move(options), std::move(handler));
    return *this;
  }

  // Declares a workflow: a callable that takes a Context&, and then its input by value or by reference to const. See
  // workflow.h. What is returned starts it. Like a task, it is declared once, and under one name.
  template <class Function>
  auto workflow(std::string type, Function function, WorkflowOptions options = {}) {
    const void* address = detail::address_of(function);
    declare_workflow(type, std::move(options), detail::workflow_of(std::move(function)), address);
    if constexpr (detail::HasSignature<Function>) {
      return workflow_named<detail::FunctionInput<Function>, detail::FunctionResult<Function>>(std::move(type));
    }
  }
  template <class Input, class Result, class Function>
  Workflow<Input, Result> workflow(const Workflow<Input, Result>& declared, Function function,
                                   WorkflowOptions options = {}) {
    static_assert(detail::fits<Function, Input, Result>(),
                  "hapax: this function does not take the input or does not return the result of the workflow");
    if constexpr (detail::fits<Function, Input, Result>()) {
      workflow(declared.name(), std::move(function), std::move(options));
    }
    return workflow_named<Input, Result>(declared.name());
  }

  // A workflow that another program runs.
  template <class Input, class Result>
  Workflow<Input, Result> workflow_named(std::string type) const {
    return Workflow<Input, Result>(std::move(type), state_);
  }

  // Sets the limits of a queue and how long it keeps what is closed, in place of what was set before. The settings of
  // hapax.toml win. Whether the queue is paused stays as it is.
  App& configure_queue(const std::string& queue, const QueueOptions& options);

  // Starts a workflow and returns when that is durable. The workflow id is its identity: if it was started before,
  // nothing happens and the handle is the existing one's, unless options.reuse says otherwise. options.key is not for
  // workflows.
  //
  //   app.start("process_order", "order-456", Order{456, 99.99});
  template <class Input = std::nullptr_t>
  AnyWorkflowHandle start(std::string_view type, std::string_view workflow_id, const Input& input = {},
                          const SubmitOptions& options = {}) {
    return start_json(type, workflow_id, to_json(input), options);
  }
  template <class Input, class Result>
  WorkflowHandle<Result> start(const Workflow<Input, Result>& workflow, std::string_view workflow_id,
                               const std::type_identity_t<detail::Value<Input>>& input,
                               const SubmitOptions& options = {}) {
    return WorkflowHandle<Result>(start_json(workflow.name(), workflow_id, to_json(input), options));
  }
  template <class Result>
  WorkflowHandle<Result> start(const Workflow<void, Result>& workflow, std::string_view workflow_id,
                               const SubmitOptions& options = {}) {
    return WorkflowHandle<Result>(start_json(workflow.name(), workflow_id, {}, options));
  }
  template <class Result, class... Parameters, class Input = std::nullptr_t>
  WorkflowHandle<detail::Plain<Result>> start(Result (*function)(Context&, Parameters...), std::string_view workflow_id,
                                              const Input& input = {}, const SubmitOptions& options = {}) {
    detail::check_step_input<Input, detail::Shape<std::tuple<Context&, Parameters...>, Context>>();
    return WorkflowHandle<detail::Plain<Result>>(
        start_json(type_of(reinterpret_cast<const void*>(function)), workflow_id, to_json(input), options));
  }
  template <class Input, class Result, class... Rest>
  void start(const Task<Input, Result>&, const Rest&...) {
    static_assert(detail::never<Input>, "hapax: a task is submitted, not started: task.submit(input)");
  }

  // The same without waiting, like submit_async(). WorkflowHandle::when_closed() reports the end in the same way, and
  // also a start that failed.
  //
  //   app.start_async("process_order", "order-456", order, {}, [](const hapax::AnyWorkflowHandle& handle) {
  //     handle.when_closed([](const hapax::AnyWorkflowHandle& closed) {
  //       try { closed.result<Receipt>(); … } catch (const hapax::Error& failure) { … }
  //     });
  //   });
  using Started = std::function<void(AnyWorkflowHandle)>;
  template <class Input>
  void start_async(std::string_view type, std::string_view workflow_id, const Input& input,
                   const SubmitOptions& options, Started started) {
    start_json_async(type, workflow_id, to_json(input), options, std::move(started));
  }

  // The workflow of that id, wherever it was started. Throws WorkflowNotFound if there is none.
  AnyWorkflowHandle find_workflow(std::string_view workflow_id);

  // Submits a task and returns when it is durable. If its identity was submitted before, nothing happens and the handle
  // is the existing task's: Handle::created() says which. The same key with another input throws IdempotencyConflict.
  template <class Input>
  AnyHandle submit(std::string_view type, const Input& input, const SubmitOptions& options = {}) {
    return submit_json(type, to_json(input), options);
  }

  template <class Input, class Result>
  Handle<Result> submit(const Task<Input, Result>& task, const std::type_identity_t<detail::Value<Input>>& input,
                        const SubmitOptions& options = {}) {
    return Handle<Result>(submit_json(task.name(), to_json(input), options));
  }

  // By the function instead of its name: it must have been declared, and the input must be what it takes.
  template <class Result, class... Parameters, class Input>
  Handle<detail::Plain<Result>> submit(Result (*function)(Parameters...), const Input& input,
                                       const SubmitOptions& options = {}) {
    detail::check_input<Input, Parameters...>();
    return Handle<detail::Plain<Result>>(
        submit_json(type_of(reinterpret_cast<const void*>(function)), to_json(input), options));
  }
  template <class Input, class Result, class... Rest>
  void submit(const Workflow<Input, Result>&, const Rest&...) {
    static_assert(detail::never<Input>,
                  "hapax: a workflow is started, not submitted: workflow.start(workflow_id, input)");
  }

  // The same without waiting: for a caller with many submissions in flight and no thread for each. `done` is called
  // once, with a handle that throws on use what submit() would have thrown, and that is valid as long as this app. It
  // is called on one of the app's threads, so it must not block or throw, but it may submit the next one. An app that
  // is closed before calls it first. An error in the call itself is thrown at once.
  //
  //   app.submit_async("charge_card", order, hapax::key("charge-order-456"), [](const hapax::AnyHandle& handle) { … });
  using Done = std::function<void(AnyHandle)>;
  template <class Input>
  void submit_async(std::string_view type, const Input& input, const SubmitOptions& options, Done done) {
    submit_json_async(type, to_json(input), options, std::move(done));
  }
  template <class Result, class... Parameters, class Input>
  void submit_async(Result (*function)(Parameters...), const Input& input, const SubmitOptions& options, Done done) {
    detail::check_input<Input, Parameters...>();
    submit_json_async(type_of(reinterpret_cast<const void*>(function)), to_json(input), options, std::move(done));
  }

  // Up to 1,000 at once, in one commit. In order; the first of two equal identities creates, the second finds it. A
  // refused item throws when its handle is used, and does not keep the others from being submitted.
  std::vector<AnyHandle> submit_batch(const std::vector<BatchItem>& items);

  // Submits inside a transaction that the caller began on its own SQLite connection to the file this app has open: the
  // task exists if and only if the caller commits. Only for sqlite: URLs. The handle is valid after the commit.
  template <class Input>
  AnyHandle submit_in(sqlite3* connection, std::string_view type, const Input& input,
                      const SubmitOptions& options = {}) {
    return submit_json_in(connection, type, to_json(input), options);
  }

  // The same on the caller's own PGconn* to the database of this app's postgres:// URL: blocking, not in pipeline mode.
  template <class Input>
  AnyHandle submit_in(pg_conn* connection, std::string_view type, const Input& input,
                      const SubmitOptions& options = {}) {
    return submit_json_in(connection, type, to_json(input), options);
  }

  // Starts a workflow inside a transaction of the caller's own, as submit_in() does: it runs if and only if the caller
  // commits. Started again under its workflow id, in this transaction or a later one, it is the same workflow.
  template <class Input = std::nullptr_t>
  AnyWorkflowHandle start_in(sqlite3* connection, std::string_view type, std::string_view workflow_id,
                             const Input& input = {}, const SubmitOptions& options = {}) {
    return start_json_in(connection, type, workflow_id, to_json(input), options);
  }
  template <class Input = std::nullptr_t>
  AnyWorkflowHandle start_in(pg_conn* connection, std::string_view type, std::string_view workflow_id,
                             const Input& input = {}, const SubmitOptions& options = {}) {
    return start_json_in(connection, type, workflow_id, to_json(input), options);
  }

  // Runs the function here and now, on this thread, at most once for each key: a later call gets its result, and so
  // does one beside it, in this process or another, which waits. If the process dies, the next call runs it as
  // attempt 2 once its lease is over. What the function throws is thrown here and to those who wait; the next call
  // runs it again. Another input under the same key throws IdempotencyConflict.
  //
  //   const auto payment = app.once("charge-order-456", charge_card, order);
  template <class Function, class Input = std::nullptr_t>
  auto once(std::string_view key, Function function, const Input& input = {}, const OnceOptions& options = {}) {
    using Result = detail::Plain<typename detail::Signature<Function>::Result>;
    detail::check_step_input<Input, detail::Shape<typename detail::Signature<Function>::Parameters>>();
    const void* address = detail::address_of(function);
    const std::string result =
        once_json(key, address, to_json(input), detail::handler_of(std::move(function)), options);
    if constexpr (!std::is_void_v<Result>) return from_json<Result>(result);
  }

  // The task of that id, wherever it was submitted. Throws TaskNotFound if there is none.
  AnyHandle find(std::string_view id);

  // Why a task or workflow does not run, or how it ended: sentences for people, one on each line; as_json: what
  // GET /v1/tasks/{id}/why answers. By its id, or the workflow's. Throws TaskNotFound if there is none.
  std::string why(std::string_view id);
  std::string why_json(std::string_view id);

  // Runs tasks and workflows until stop() is called, or SIGTERM or SIGINT arrives: then it finishes what runs, reports
  // it, and returns. A separate thread renews leases, so a handler may take as long as it likes. work() waits for a
  // store or server that is down for a while; one that will never work (a wrong token, a damaged file) ends it with an
  // Error.
  void work(const WorkOptions& options = {});

  // Starts the workflow, or submits the task, with this input whenever the schedule says so: see trigger.h. The name is
  // the activity's. Declared again, it takes the new definition.
  template <class Input, class Result>
  void schedule(const std::string& name, const Workflow<Input, Result>& workflow,
                const std::type_identity_t<detail::Value<Input>>& input, const CronSchedule& cron) {
    schedule_workflow(name, workflow.name(), to_json(input), cron);
  }
  template <class Result>
  void schedule(const std::string& name, const Workflow<void, Result>& workflow, const CronSchedule& cron) {
    schedule_workflow(name, workflow.name(), {}, cron);
  }
  template <class Input, class Result>
  void schedule(const std::string& name, const Task<Input, Result>& task,
                const std::type_identity_t<detail::Value<Input>>& input, const CronSchedule& cron) {
    schedule_task(name, task.name(), to_json(input), cron);
  }
  template <class Result>
  void schedule(const std::string& name, const Task<void, Result>& task, const CronSchedule& cron) {
    schedule_task(name, task.name(), {}, cron);
  }

  // What is to happen with events of this type (none: of every type), whose data is a Data: see trigger.h.
  template <class Data>
  OnEvent<Data> on_event(std::string type) {
    return OnEvent<Data>(state_, std::move(type));
  }

  // Delivers an event, and returns when what it starts is durable. Under its id again, it does nothing more; another
  // event under that id throws IdempotencyConflict.
  Published publish(const api::CloudEvent& event);

  // The tasks, or the latest runs of workflows and those before, that fit the filter, newest first: see listing.h.
  Listing<TaskInfo> tasks(const TaskFilter& filter);
  Listing<WorkflowInfo> workflows(const WorkflowFilter& filter);

  // Tells these functions what happens in this program's workers: see observe.h.
  void observe(Observer observer);

  // Makes work() return as on SIGTERM. May be called from any thread and from a handler.
  void stop();

  // The untyped forms.
  AnyHandle submit_json(std::string_view type, std::string input_json, const SubmitOptions& options = {});
  std::string once_json(std::string_view key, const void* function, std::string input_json,
                        const detail::Handler& handler, const OnceOptions& options = {});
  void submit_json_async(std::string_view type, std::string input_json, const SubmitOptions& options, Done done);
  AnyHandle submit_json_in(sqlite3* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options = {});
  AnyHandle submit_json_in(pg_conn* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options = {});
  AnyWorkflowHandle start_json(std::string_view type, std::string_view workflow_id, std::string input_json,
                               const SubmitOptions& options = {});
  void start_json_async(std::string_view type, std::string_view workflow_id, std::string input_json,
                        const SubmitOptions& options, Started started);
  AnyWorkflowHandle start_json_in(sqlite3* connection, std::string_view type, std::string_view workflow_id,
                                  std::string input_json, const SubmitOptions& options = {});
  AnyWorkflowHandle start_json_in(pg_conn* connection, std::string_view type, std::string_view workflow_id,
                                  std::string input_json, const SubmitOptions& options = {});

 protected:
  explicit App(std::shared_ptr<detail::AppState> state) : state_(std::move(state)) {}
  detail::AppState& state() const { return *state_; }
  std::string type_of(const void* address) const;

 private:
  friend App open(const std::string& url, const OpenOptions& options);
  friend class TaskContext;
  friend class Worker;
  friend class detail::Declared;
  friend void detail::replay(const detail::Declared& workflow, std::string_view exported);

  void declare(std::string type, TaskOptions options, detail::Handler handler, const void* address);
  void schedule_json(const std::string& name, std::string_view what, const std::string& start_json,
                     const CronSchedule& cron);
  void schedule_workflow(const std::string& name, const std::string& type, const std::string& input_json,
                         const CronSchedule& cron);
  void schedule_task(const std::string& name, const std::string& type, const std::string& input_json,
                     const CronSchedule& cron);
  void declare_any(TaskOptions options, detail::Handler handler);
  void declare_workflow(std::string type, WorkflowOptions options, detail::WorkflowFunction function,
                        const void* address);
  detail::AppState& live() const;  // throws where it cannot be used

  std::shared_ptr<detail::AppState> state_;
};

// Opens `memory:`, `sqlite:FILE` (created if it is new), or a server at `http://host:port`. The same program runs on
// each. Throws Error with a sentence that says what to do.
App open(const std::string& url, const OpenOptions& options = {});

}  // namespace hapax
