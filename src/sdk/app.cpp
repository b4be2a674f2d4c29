#include "hapax/app.h"

#include "core/name.h"
#include "engine/check_request.h"
#include "sdk/app_state.h"
#include "sdk/worker.h"

namespace hapax {

using detail::AppState;
using detail::HandleState;
using detail::WorkflowHandleState;

App open(const std::string& url, const OpenOptions& options) {
  return detail::translating([&] {
    if (const auto wrong = check_name(options.name_space)) {
      throw InvalidField(InvalidField::Place::header, "Hapax-Namespace", *wrong);
    }
    try {
      return App(std::make_shared<AppState>(
          open_engine(url, {.token = options.token, .name_space = options.name_space}), options.name_space));
    } catch (const BadUrl& error) {
      throw Error("InvalidRequest", error.what());
    }
  });
}

void App::declare(std::string type, TaskOptions options, detail::Handler handler, const void* address) {
  state_->declare(std::move(type), detail::DeclaredTask{std::move(options), std::move(handler)}, address);
  // A server is told when it is first needed: it may be away now.
  if (!state_->is_remote()) detail::translating([&] { state_->tell_types(); });
}

void App::declare_workflow(std::string type, WorkflowOptions options, detail::WorkflowFunction function,
                           const void* address) {
  state_->declare(std::move(type), detail::DeclaredWorkflow{std::move(options), std::move(function)}, address);
}

std::string App::type_of(const void* address) const { return state_->type_of(address); }

namespace {

// The receipt, or the error that using the handle throws.
std::variant<Receipt, Error> received(std::variant<SubmitResult, Error> answer, Kind of) {
  if (auto* failure = std::get_if<Error>(&answer)) return std::move(*failure);
  return detail::received_or_refused(std::get<SubmitResult>(std::move(answer)), of);
}

std::vector<SubmitResult> submit_all(AppState& state, std::vector<SubmitRequest> requests) {
  return detail::translating([&] {
    state.tell_types();
    return await<std::vector<SubmitResult>>(
        [&](auto reply) { state.engine().submit(state.name_space(), std::move(requests), std::move(reply)); });
  });
}

// Calls `done` with the outcome, or why it is unknown.
void submit_one(AppState& state, SubmitRequest request, std::function<void(std::variant<SubmitResult, Error>)> done) {
  std::vector<SubmitRequest> requests;
  requests.push_back(std::move(request));
  Reply<std::vector<SubmitResult>> reply = [done = std::move(done)](Answer<std::vector<SubmitResult>> answer) {
    std::optional<std::variant<SubmitResult, Error>> result;
    try {
      result = std::move(detail::translating([&] { return std::move(answer).get(); }).at(0));
    } catch (const Error& failure) {
      result = failure;
    }
    done(*std::move(result));
  };
  detail::translating([&] {
    state.tell_types();
    state.engine().submit(state.name_space(), std::move(requests), std::move(reply));
  });
}

QueueSettings to_settings(const QueueOptions& options) {
  QueueSettings settings;
  if (options.retention) settings.retention = options.retention->length;
  if (options.rate_limit) {
    settings.rate_limit = parse_rate(*options.rate_limit);
    if (!settings.rate_limit) throw InvalidField("/rate_limit", "must be a rate such as \"100/sec\" or \"500/min\"");
  }
  settings.burst = options.burst;
  settings.max_running = options.max_running;
  settings.concurrency_limit = options.concurrency_limit;
  settings.cancel_grace = options.cancel_grace;
  settings.idempotency_ttl = options.idempotency_ttl;
  return settings;
}

SubmitRequest start_request(AppState& state, std::string_view type, std::string_view workflow_id,
                            const std::string& input_json, const SubmitOptions& options) {
  if (options.key) {
    throw Error("InvalidRequest", "a workflow's key is its workflow id: leave options.key out",
                {.pointer = "/idempotency_key"});
  }
  SubmitOptions named = options;
  named.key = workflow_id;
  return detail::to_request(state, type, input_json, named, Kind::workflow);
}

}  // namespace

Handle App::submit_json(std::string_view type, std::string input_json, const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(detail::to_request(*state_, type, input_json, options));
  auto results = submit_all(*state_, std::move(requests));
  auto handle =
      std::make_shared<HandleState>(state_, detail::received_or_refused(std::move(results.at(0)), Kind::task));
  handle->receipt();  // a refusal is thrown here and now
  return Handle(std::move(handle));
}

void App::submit_json_async(std::string_view type, std::string input_json, const SubmitOptions& options, Done done) {
  const std::shared_ptr<AppState> state = detail::unowned(state_);
  submit_one(*state, detail::to_request(*state_, type, input_json, options),
             [state, done = std::move(done)](std::variant<SubmitResult, Error> answer) {
               done(Handle(std::make_shared<HandleState>(state, received(std::move(answer), Kind::task))));
             });
}

std::vector<Handle> App::submit_batch(const std::vector<BatchItem>& items) {
  detail::translating([&] { check_batch(items.size()); });
  std::vector<std::optional<HandleState::Result>> results(items.size());
  std::vector<SubmitRequest> requests;
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      requests.push_back(detail::to_request(*state_, items[i].type, items[i].input_json, items[i].options));
    } catch (const Error& error) {
      results[i] = error;
    }
  }
  auto answers = requests.empty() ? std::vector<SubmitResult>() : submit_all(*state_, std::move(requests));
  auto next = answers.begin();
  std::vector<Handle> handles;
  for (auto& result : results) {
    if (!result) result = detail::received_or_refused(std::move(*next++), Kind::task);
    handles.push_back(Handle(std::make_shared<HandleState>(state_, *std::move(result))));
  }
  return handles;
}

namespace {

// What was submitted through the caller's own connection, and committed by the caller later.
template <class Connection, class SubmitIn>
std::variant<Receipt, Error> submit_in_own(AppState& state, const SubmitIn& submit_in, Connection* connection,
                                           SubmitRequest request) {
  const Kind kind = request.kind;
  return detail::received_or_refused(
      detail::translating([&] { return submit_in(connection, state.name_space(), std::move(request)); }), kind);
}

std::variant<Receipt, Error> submit_in_own(AppState& state, sqlite3* connection, SubmitRequest request) {
  const auto& submit_in = state.opened().submit_in;
  if (!submit_in) {
    throw Error("InvalidRequest",
                "a transaction of your own needs an app opened on a sqlite: URL, the file of that connection");
  }
  return submit_in_own(state, submit_in, connection, std::move(request));
}

std::variant<Receipt, Error> submit_in_own(AppState& state, pg_conn* connection, SubmitRequest request) {
  const auto& submit_in = state.opened().submit_in_postgres;
  if (!submit_in) {
    throw Error("InvalidRequest",
                "a transaction of your own needs an app opened on a postgres:// URL, the database of that connection");
  }
  return submit_in_own(state, submit_in, connection, std::move(request));
}

template <class Connection>
std::shared_ptr<HandleState> submit_task_in(const std::shared_ptr<AppState>& state, Connection* connection,
                                            std::string_view type, const std::string& input_json,
                                            const SubmitOptions& options) {
  auto handle = std::make_shared<HandleState>(
      state, submit_in_own(*state, connection, detail::to_request(*state, type, input_json, options)));
  handle->receipt();  // a refusal is thrown here and now
  return handle;
}

template <class Connection>
std::shared_ptr<WorkflowHandleState> start_workflow_in(const std::shared_ptr<AppState>& state, Connection* connection,
                                                       std::string_view type, std::string_view workflow_id,
                                                       const std::string& input_json, const SubmitOptions& options) {
  auto handle = std::make_shared<WorkflowHandleState>(
      state, std::string(workflow_id),
      submit_in_own(*state, connection, start_request(*state, type, workflow_id, input_json, options)));
  handle->receipt();
  return handle;
}

}  // namespace

Handle App::submit_json_in(sqlite3* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options) {
  return Handle(submit_task_in(state_, connection, type, input_json, options));
}

Handle App::submit_json_in(pg_conn* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options) {
  return Handle(submit_task_in(state_, connection, type, input_json, options));
}

WorkflowHandle App::start_json_in(sqlite3* connection, std::string_view type, std::string_view workflow_id,
                                  std::string input_json, const SubmitOptions& options) {
  return WorkflowHandle(start_workflow_in(state_, connection, type, workflow_id, input_json, options));
}

WorkflowHandle App::start_json_in(pg_conn* connection, std::string_view type, std::string_view workflow_id,
                                  std::string input_json, const SubmitOptions& options) {
  return WorkflowHandle(start_workflow_in(state_, connection, type, workflow_id, input_json, options));
}

WorkflowHandle App::start_json(std::string_view type, std::string_view workflow_id, std::string input_json,
                               const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(start_request(*state_, type, workflow_id, input_json, options));
  auto results = submit_all(*state_, std::move(requests));
  auto handle = std::make_shared<WorkflowHandleState>(
      state_, std::string(workflow_id), detail::received_or_refused(std::move(results.at(0)), Kind::workflow));
  handle->receipt();  // a refusal is thrown here and now
  return WorkflowHandle(std::move(handle));
}

void App::start_json_async(std::string_view type, std::string_view workflow_id, std::string input_json,
                           const SubmitOptions& options, Started started) {
  const std::shared_ptr<AppState> state = detail::unowned(state_);
  SubmitRequest request = start_request(*state, type, workflow_id, input_json, options);
  submit_one(
      *state, std::move(request),
      [state, id = std::string(workflow_id), started = std::move(started)](std::variant<SubmitResult, Error> answer) {
        started(WorkflowHandle(
            std::make_shared<WorkflowHandleState>(state, id, received(std::move(answer), Kind::workflow))));
      });
}

WorkflowHandle App::find_workflow(std::string_view workflow_id) {
  auto run = detail::translating(
      [&] { return state_->engine().find_workflow(state_->name_space(), std::string(workflow_id)); });
  if (!run) throw Error("WorkflowNotFound", "there is no workflow '" + std::string(workflow_id) + "'");
  Receipt receipt;
  receipt.execution = *std::move(run);
  return WorkflowHandle(std::make_shared<WorkflowHandleState>(state_, std::string(workflow_id), std::move(receipt)));
}

Handle App::find(std::string_view id) {
  const auto parsed = ExecutionId::parse(id);
  auto execution = detail::translating(
      [&] { return parsed ? state_->engine().find(state_->name_space(), *parsed) : std::optional<Execution>(); });
  if (!execution) throw Error("TaskNotFound", "there is no task '" + std::string(id) + "'");
  Receipt receipt;
  receipt.execution = *std::move(execution);
  return Handle(std::make_shared<HandleState>(state_, std::move(receipt)));
}

App& App::configure_queue(const std::string& queue, const QueueOptions& options) {
  detail::translating([&] { state_->engine().put_queue(state_->name_space(), queue, to_settings(options)); });
  return *this;
}

void App::work(const WorkOptions& options) {
  detail::Worker worker(*state_, options);
  worker.run();
}

void App::stop() { state_->stop_requested = true; }

}  // namespace hapax
