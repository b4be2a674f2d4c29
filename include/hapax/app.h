// The app: a store or a server opened by its URL, this program's tasks and workflows, and the verbs on them.
//
//   auto app = hapax::open("sqlite:orders.db");            // or memory:, postgres://…, s3://…, http://127.0.0.1:7373
//   app.task("charge_card", charge_card, {.queue = "payments"});
//   auto handle = app.submit(charge_card, Order{456, 99.99}, hapax::key("charge-order-456"));
//   app.work();                                            // here, or in another process
//   auto charge = handle.result<std::string>();
//
// Say it twice, it happens once: the second submit with the same key returns the handle of the first one's task.
//
// An App is a handle to shared state: copies are cheap and refer to the same app. All methods may be called from any
// thread; task() and workflow() before work(). Every error is thrown as hapax::Error.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/detail/function.h"
#include "hapax/error.h"
#include "hapax/json.h"
#include "hapax/options.h"
#include "hapax/task.h"
#include "hapax/workflow.h"

struct sqlite3;
struct pg_conn;  // libpq's PGconn

namespace hapax {

namespace detail {
class AppState;
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
};

class App {
 public:
  // Declares a task: from now on work() runs `function` for tasks of that type, and submit() accepts the function
  // instead of its name. A task is any callable with at most two parameters, in this order: a TaskContext&, and the
  // input by value or by reference to const. Its return value is the result.
  //
  //   std::string charge_card(const Order&);
  //   app.task("send_mail", [](hapax::TaskContext& context, const Mail& mail) { … });
  template <class Function>
  App& task(std::string type, Function function, TaskOptions options = {}) {
    const void* address = detail::address_of(function);
    declare(std::move(type), std::move(options), detail::handler_of(std::move(function)), address);
    return *this;
  }

  // Declares a handler for every type without its own task: JSON text in, JSON text out ("" for nothing).
  App& any_task(detail::Handler handler, TaskOptions options = {}) {
    declare("", std::move(options), std::move(handler), nullptr);
    return *this;
  }

  // Declares a workflow: a callable that takes a Context&, and then its input by value or by reference to const. See
  // workflow.h.
  template <class Function>
  App& workflow(std::string type, Function function, WorkflowOptions options = {}) {
    const void* address = detail::address_of(function);
    declare_workflow(std::move(type), std::move(options), detail::workflow_of(std::move(function)), address);
    return *this;
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
  WorkflowHandle start(std::string_view type, std::string_view workflow_id, const Input& input = {},
                       const SubmitOptions& options = {}) {
    return start_json(type, workflow_id, to_json(input), options);
  }
  template <class Result, class... Parameters, class Input = std::nullptr_t>
  WorkflowHandle start(Result (*function)(Context&, Parameters...), std::string_view workflow_id,
                       const Input& input = {}, const SubmitOptions& options = {}) {
    detail::check_step_input<Input, detail::Shape<std::tuple<Context&, Parameters...>, Context>>();
    return start_json(type_of(reinterpret_cast<const void*>(function)), workflow_id, to_json(input), options);
  }

  // The same without waiting, like submit_async(). WorkflowHandle::when_closed() reports the end in the same way, and
  // also a start that failed.
  //
  //   app.start_async("process_order", "order-456", order, {}, [](const hapax::WorkflowHandle& handle) {
  //     handle.when_closed([](const hapax::WorkflowHandle& closed) {
  //       try { closed.result<Receipt>(); … } catch (const hapax::Error& failure) { … }
  //     });
  //   });
  using Started = std::function<void(WorkflowHandle)>;
  template <class Input>
  void start_async(std::string_view type, std::string_view workflow_id, const Input& input,
                   const SubmitOptions& options, Started started) {
    start_json_async(type, workflow_id, to_json(input), options, std::move(started));
  }

  // The workflow of that id, wherever it was started. Throws WorkflowNotFound if there is none.
  WorkflowHandle find_workflow(std::string_view workflow_id);

  // Submits a task and returns when it is durable. If its identity was submitted before, nothing happens and the handle
  // is the existing task's: Handle::created() says which. The same key with another input throws IdempotencyConflict.
  template <class Input>
  Handle submit(std::string_view type, const Input& input, const SubmitOptions& options = {}) {
    return submit_json(type, to_json(input), options);
  }

  // By the function instead of its name: it must have been declared, and the input must be what it takes.
  template <class Result, class... Parameters, class Input>
  Handle submit(Result (*function)(Parameters...), const Input& input, const SubmitOptions& options = {}) {
    detail::check_input<Input, Parameters...>();
    return submit_json(type_of(reinterpret_cast<const void*>(function)), to_json(input), options);
  }

  // The same without waiting: for a caller with many submissions in flight and no thread for each. `done` is called
  // once, with a handle that throws on use what submit() would have thrown, and that is valid as long as this app. It
  // is called on one of the app's threads, so it must not block or throw, but it may submit the next one. An app that
  // is closed before calls it first. An error in the call itself is thrown at once.
  //
  //   app.submit_async("charge_card", order, hapax::key("charge-order-456"), [](const hapax::Handle& handle) { … });
  using Done = std::function<void(Handle)>;
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
  std::vector<Handle> submit_batch(const std::vector<BatchItem>& items);

  // Submits inside a transaction that the caller began on its own SQLite connection to the file this app has open: the
  // task exists if and only if the caller commits. Only for sqlite: URLs. The handle is valid after the commit.
  template <class Input>
  Handle submit_in(sqlite3* connection, std::string_view type, const Input& input, const SubmitOptions& options = {}) {
    return submit_json_in(connection, type, to_json(input), options);
  }

  // The same on the caller's own PGconn* to the database of this app's postgres:// URL: blocking, not in pipeline mode.
  template <class Input>
  Handle submit_in(pg_conn* connection, std::string_view type, const Input& input, const SubmitOptions& options = {}) {
    return submit_json_in(connection, type, to_json(input), options);
  }

  // Starts a workflow inside a transaction of the caller's own, as submit_in() does: it runs if and only if the caller
  // commits. Started again under its workflow id, in this transaction or a later one, it is the same workflow.
  template <class Input = std::nullptr_t>
  WorkflowHandle start_in(sqlite3* connection, std::string_view type, std::string_view workflow_id,
                          const Input& input = {}, const SubmitOptions& options = {}) {
    return start_json_in(connection, type, workflow_id, to_json(input), options);
  }
  template <class Input = std::nullptr_t>
  WorkflowHandle start_in(pg_conn* connection, std::string_view type, std::string_view workflow_id,
                          const Input& input = {}, const SubmitOptions& options = {}) {
    return start_json_in(connection, type, workflow_id, to_json(input), options);
  }

  // The task of that id, wherever it was submitted. Throws TaskNotFound if there is none.
  Handle find(std::string_view id);

  // Runs tasks and workflows until stop() is called, or SIGTERM or SIGINT arrives: then it finishes what runs, reports
  // it, and returns. A separate thread renews leases, so a handler may take as long as it likes. work() waits for a
  // store or server that is down for a while; one that will never work (a wrong token, a damaged file) ends it with an
  // Error.
  void work(const WorkOptions& options = {});

  // Makes work() return as on SIGTERM. May be called from any thread and from a handler.
  void stop();

  // The untyped forms.
  Handle submit_json(std::string_view type, std::string input_json, const SubmitOptions& options = {});
  void submit_json_async(std::string_view type, std::string input_json, const SubmitOptions& options, Done done);
  Handle submit_json_in(sqlite3* connection, std::string_view type, std::string input_json,
                        const SubmitOptions& options = {});
  Handle submit_json_in(pg_conn* connection, std::string_view type, std::string input_json,
                        const SubmitOptions& options = {});
  WorkflowHandle start_json(std::string_view type, std::string_view workflow_id, std::string input_json,
                            const SubmitOptions& options = {});
  void start_json_async(std::string_view type, std::string_view workflow_id, std::string input_json,
                        const SubmitOptions& options, Started started);
  WorkflowHandle start_json_in(sqlite3* connection, std::string_view type, std::string_view workflow_id,
                               std::string input_json, const SubmitOptions& options = {});
  WorkflowHandle start_json_in(pg_conn* connection, std::string_view type, std::string_view workflow_id,
                               std::string input_json, const SubmitOptions& options = {});

 protected:
  explicit App(std::shared_ptr<detail::AppState> state) : state_(std::move(state)) {}
  detail::AppState& state() const { return *state_; }

 private:
  friend App open(const std::string& url, const OpenOptions& options);

  void declare(std::string type, TaskOptions options, detail::Handler handler, const void* address);
  void declare_workflow(std::string type, WorkflowOptions options, detail::WorkflowFunction function,
                        const void* address);
  std::string type_of(const void* address) const;

  std::shared_ptr<detail::AppState> state_;
};

// Opens `memory:`, `sqlite:FILE` (created if it is new), or a server at `http://host:port`. The same program runs on
// each. Throws Error with a sentence that says what to do.
App open(const std::string& url, const OpenOptions& options = {});

}  // namespace hapax
