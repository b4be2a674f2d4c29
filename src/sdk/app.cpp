#include "hapax/app.h"

#include "core/json_writer.h"
#include "core/name.h"
#include "engine/check_request.h"
#include "open/engine_options.h"
#include "sdk/app_state.h"
#include "sdk/worker.h"
#include "wire/write_answer.h"

namespace hapax {

using detail::AppState;
using detail::HandleState;
using detail::WorkflowHandleState;

namespace {

EngineOptions engine_options_of(const OpenOptions& options, const std::shared_ptr<std::atomic<int>>& working) {
  EngineOptions engine;
  if (!options.config.empty()) engine = engine_options_of_file(options.config);
  if (options.schedules == Schedules::never) engine.fires = [] { return false; };
  if (options.schedules == Schedules::while_working) engine.fires = [working] { return *working > 0; };
  return engine;
}

}  // namespace

App open(const std::string& url, const OpenOptions& options) {
  return detail::translating([&] {
    if (const auto wrong = check_name(options.name_space)) {
      throw InvalidField(InvalidField::Place::header, "Hapax-Namespace", *wrong);
    }
    try {
      const auto working = std::make_shared<std::atomic<int>>(0);
      Opened opened = open_engine(
          url,
          {.token = options.token, .name_space = options.name_space, .engine = engine_options_of(options, working)});
      return App(std::make_shared<AppState>(std::move(opened), options.name_space, options.log, working));
    } catch (const BadUrl& error) {
      throw Error("InvalidRequest", error.what());
    }
  });
}

detail::AppState& App::live() const {
  state_->check_usable();
  return *state_;
}

void App::declare(std::string type, TaskOptions options, detail::Handler handler, const void* address) {
  state_->declare(std::move(type), detail::DeclaredTask{std::move(options), std::move(handler)}, address);
  // A server is told when it is first needed: it may be away now.
  if (!state_->is_remote()) detail::translating([&] { state_->tell_types(); });
}

void App::declare_any(TaskOptions options, detail::Handler handler) {
  state_->declare_any(detail::DeclaredTask{std::move(options), std::move(handler)});
}

void App::declare_workflow(std::string type, WorkflowOptions options, detail::WorkflowFunction function,
                           const void* address) {
  state_->declare(std::move(type), detail::DeclaredWorkflow{std::move(options), std::move(function)}, address);
}

std::string App::type_of(const void* address) const { return state_->type_of(address); }

namespace {

// The receipt, or the error that using the handle throws.
using Received = std::variant<Receipt, Error>;

Received received(Answer<std::vector<SubmitResult>> answer, Kind of) {
  try {
    auto results = detail::translating([&] { return std::move(answer).get(); });
    return detail::received_or_refused(std::move(results.at(0)), of);
  } catch (const Error& failure) {
    return failure;
  }
}

std::vector<SubmitResult> submit_all(AppState& state, std::vector<SubmitRequest> requests) {
  return detail::translating([&] {
    state.tell_types();
    return await<std::vector<SubmitResult>>(
        [&](auto reply) { state.engine().submit(state.name_space(), std::move(requests), std::move(reply)); });
  });
}

// Calls `done` with the outcome, or why it is unknown.
void submit_one(AppState& state, SubmitRequest request, std::function<void(Received&&)> done) {
  const Kind kind = request.kind;
  std::vector<SubmitRequest> requests;
  requests.push_back(std::move(request));
  Reply<std::vector<SubmitResult>> reply = [kind, done = std::move(done)](Answer<std::vector<SubmitResult>> answer) {
    done(received(std::move(answer), kind));
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

AnyHandle App::submit_json(std::string_view type, std::string input_json, const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(detail::to_request(live(), type, input_json, options));
  auto results = submit_all(live(), std::move(requests));
  auto handle =
      std::make_shared<HandleState>(state_, detail::received_or_refused(std::move(results.at(0)), Kind::task));
  handle->receipt();  // a refusal is thrown here and now
  return AnyHandle(std::move(handle));
}

void App::submit_json_async(std::string_view type, std::string input_json, const SubmitOptions& options, Done done) {
  live();
  const std::shared_ptr<AppState> state = detail::unowned(state_);
  submit_one(*state, detail::to_request(live(), type, input_json, options),
             [state, done = std::move(done)](Received&& received) {
               done(AnyHandle(std::make_shared<HandleState>(state, std::move(received))));
             });
}

std::vector<AnyHandle> App::submit_batch(const std::vector<BatchItem>& items) {
  detail::translating([&] { check_batch(items.size()); });
  std::vector<std::optional<HandleState::Result>> results(items.size());
  std::vector<SubmitRequest> requests;
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      requests.push_back(detail::to_request(live(), items[i].type, items[i].input_json, items[i].options));
    } catch (const Error& error) {
      results[i] = error;
    }
  }
  auto answers = requests.empty() ? std::vector<SubmitResult>() : submit_all(live(), std::move(requests));
  auto next = answers.begin();
  std::vector<AnyHandle> handles;
  for (auto& result : results) {
    if (!result) result = detail::received_or_refused(std::move(*next++), Kind::task);
    handles.push_back(AnyHandle(std::make_shared<HandleState>(state_, *std::move(result))));
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
  state->check_usable();
  auto handle = std::make_shared<HandleState>(
      state, submit_in_own(*state, connection, detail::to_request(*state, type, input_json, options)));
  handle->receipt();  // a refusal is thrown here and now
  return handle;
}

template <class Connection>
std::shared_ptr<WorkflowHandleState> start_workflow_in(const std::shared_ptr<AppState>& state, Connection* connection,
                                                       std::string_view type, std::string_view workflow_id,
                                                       const std::string& input_json, const SubmitOptions& options) {
  state->check_usable();
  auto handle = std::make_shared<WorkflowHandleState>(
      state, std::string(workflow_id),
      submit_in_own(*state, connection, start_request(*state, type, workflow_id, input_json, options)));
  handle->receipt();
  return handle;
}

}  // namespace

AnyHandle App::submit_json_in(sqlite3* connection, std::string_view type, std::string input_json,
                              const SubmitOptions& options) {
  return AnyHandle(submit_task_in(state_, connection, type, input_json, options));
}

AnyHandle App::submit_json_in(pg_conn* connection, std::string_view type, std::string input_json,
                              const SubmitOptions& options) {
  return AnyHandle(submit_task_in(state_, connection, type, input_json, options));
}

AnyWorkflowHandle App::start_json_in(sqlite3* connection, std::string_view type, std::string_view workflow_id,
                                     std::string input_json, const SubmitOptions& options) {
  return AnyWorkflowHandle(start_workflow_in(state_, connection, type, workflow_id, input_json, options));
}

AnyWorkflowHandle App::start_json_in(pg_conn* connection, std::string_view type, std::string_view workflow_id,
                                     std::string input_json, const SubmitOptions& options) {
  return AnyWorkflowHandle(start_workflow_in(state_, connection, type, workflow_id, input_json, options));
}

AnyWorkflowHandle App::start_json(std::string_view type, std::string_view workflow_id, std::string input_json,
                                  const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(start_request(live(), type, workflow_id, input_json, options));
  auto results = submit_all(live(), std::move(requests));
  auto handle = std::make_shared<WorkflowHandleState>(
      state_, std::string(workflow_id), detail::received_or_refused(std::move(results.at(0)), Kind::workflow));
  handle->receipt();  // a refusal is thrown here and now
  return AnyWorkflowHandle(std::move(handle));
}

void App::start_json_async(std::string_view type, std::string_view workflow_id, std::string input_json,
                           const SubmitOptions& options, Started started) {
  live();
  const std::shared_ptr<AppState> state = detail::unowned(state_);
  SubmitRequest request = start_request(*state, type, workflow_id, input_json, options);
  submit_one(*state, std::move(request),
             [state, id = std::string(workflow_id), started = std::move(started)](Received&& received) {
               started(AnyWorkflowHandle(std::make_shared<WorkflowHandleState>(state, id, std::move(received))));
             });
}

AnyWorkflowHandle App::find_workflow(std::string_view workflow_id) {
  auto run = detail::translating(
      [&] { return state_->engine().find_workflow(state_->name_space(), std::string(workflow_id)); });
  if (!run) throw Error("WorkflowNotFound", "there is no workflow '" + std::string(workflow_id) + "'");
  Receipt receipt;
  receipt.execution = *std::move(run);
  return AnyWorkflowHandle(std::make_shared<WorkflowHandleState>(state_, std::string(workflow_id), std::move(receipt)));
}

AnyHandle App::find(std::string_view id) {
  const auto parsed = ExecutionId::parse(id);
  auto execution = detail::translating(
      [&] { return parsed ? state_->engine().find(state_->name_space(), *parsed) : std::optional<Execution>(); });
  if (!execution) throw Error("TaskNotFound", "there is no task '" + std::string(id) + "'");
  Receipt receipt;
  receipt.execution = *std::move(execution);
  return AnyHandle(std::make_shared<HandleState>(state_, std::move(receipt)));
}

namespace {

Why find_why(AppState& state, const std::string& id) {
  const auto why = detail::translating([&] {
    std::optional<Why> found;
    if (const auto parsed = ExecutionId::parse(id)) found = state.engine().why(state.name_space(), *parsed);
    return found ? found : state.engine().why_workflow(state.name_space(), id);
  });
  if (!why) throw Error("TaskNotFound", "there is no task or workflow '" + id + "'");
  return *why;
}

}  // namespace

std::string App::why(std::string_view id) {
  std::string text;
  for (const std::string& sentence : find_why(live(), std::string(id)).sentences) {
    text += (text.empty() ? "" : "\n") + sentence;
  }
  return text;
}

std::string App::why_json(std::string_view id) {
  JsonWriter out;
  wire::write_why(out, find_why(live(), std::string(id)));
  return out.take();
}

App& App::configure_queue(const std::string& queue, const QueueOptions& options) {
  detail::translating([&] { state_->engine().put_queue(state_->name_space(), queue, to_settings(options)); });
  return *this;
}

void App::work(const WorkOptions& options) {
  detail::Worker worker(live(), options);
  worker.run();
}

void App::observe(Observer observer) { live().telling().add(std::move(observer)); }

void App::stop() { state_->stop_requested = true; }

}  // namespace hapax
