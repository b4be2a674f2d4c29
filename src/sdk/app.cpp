#include "hapax/app.h"

#include "sdk/app_state.h"
#include "sdk/worker.h"

namespace hapax {

using detail::AppState;
using detail::HandleState;
using detail::WorkflowHandleState;

App open(const std::string& url, const OpenOptions& options) {
  return detail::translating([&] {
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
}

void App::declare_workflow(std::string type, WorkflowOptions options, detail::WorkflowFunction function,
                           const void* address) {
  state_->declare(std::move(type), detail::DeclaredWorkflow{std::move(options), std::move(function)}, address);
}

std::string App::type_of(const void* address) const { return state_->type_of(address); }

namespace {

std::vector<SubmitResult> submit_all(AppState& state, std::vector<SubmitRequest> requests) {
  return detail::translating([&] {
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
  detail::translating([&] { state.engine().submit(state.name_space(), std::move(requests), std::move(reply)); });
}

SubmitRequest start_request(AppState& state, std::string_view type, std::string_view workflow_id,
                            const std::string& input_json, const SubmitOptions& options) {
  if (options.key) throw Error("InvalidRequest", "a workflow's key is its workflow id: leave options.key out");
  detail::check_workflow_id(workflow_id);
  SubmitRequest request = detail::to_request(state, type, input_json, options, Kind::workflow);
  request.idempotency_key = workflow_id;
  return request;
}

}  // namespace

Handle App::submit_json(std::string_view type, std::string input_json, const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(detail::to_request(*state_, type, input_json, options));
  auto results = submit_all(*state_, std::move(requests));
  auto handle = std::make_shared<HandleState>(state_, std::move(results.at(0)));
  handle->receipt();  // a refusal is thrown here and now
  return Handle(std::move(handle));
}

void App::submit_json_async(std::string_view type, std::string input_json, const SubmitOptions& options, Done done) {
  const std::shared_ptr<AppState> state = detail::unowned(state_);
  submit_one(*state, detail::to_request(*state_, type, input_json, options),
             [state, done = std::move(done)](std::variant<SubmitResult, Error> answer) {
               auto handle = std::visit(
                   [&](auto&& one) { return std::make_shared<HandleState>(state, std::move(one)); }, std::move(answer));
               done(Handle(std::move(handle)));
             });
}

std::vector<Handle> App::submit_batch(const std::vector<BatchItem>& items) {
  if (items.size() > Engine::kMaxBatch) throw Error("InvalidRequest", "a batch has at most 1000 submissions");
  std::vector<SubmitRequest> requests;
  for (const BatchItem& item : items) {
    requests.push_back(detail::to_request(*state_, item.type, item.input_json, item.options));
  }
  std::vector<Handle> handles;
  if (requests.empty()) return handles;
  for (SubmitResult& result : submit_all(*state_, std::move(requests))) {
    handles.push_back(Handle(std::make_shared<HandleState>(state_, std::move(result))));
  }
  return handles;
}

namespace {

template <class Connection, class SubmitIn>
std::shared_ptr<HandleState> submit_in_own(const std::shared_ptr<AppState>& state, const SubmitIn& submit_in,
                                           Connection* connection, std::string_view type, const std::string& input_json,
                                           const SubmitOptions& options) {
  auto handle = detail::translating([&] {
    return std::make_shared<HandleState>(
        state, submit_in(connection, state->name_space(), detail::to_request(*state, type, input_json, options)));
  });
  handle->receipt();
  return handle;
}

}  // namespace

Handle App::submit_json_in(sqlite3* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options) {
  const auto& submit_in = state_->opened().submit_in;
  if (!submit_in) {
    throw Error("InvalidRequest", "submit_in() needs an app opened on a sqlite: URL, the file of that connection");
  }
  return Handle(submit_in_own(state_, submit_in, connection, type, input_json, options));
}

Handle App::submit_json_in(pg_conn* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options) {
  const auto& submit_in = state_->opened().submit_in_postgres;
  if (!submit_in) {
    throw Error("InvalidRequest",
                "submit_in() needs an app opened on a postgres:// URL, the database of that connection");
  }
  return Handle(submit_in_own(state_, submit_in, connection, type, input_json, options));
}

WorkflowHandle App::start_json(std::string_view type, std::string_view workflow_id, std::string input_json,
                               const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(start_request(*state_, type, workflow_id, input_json, options));
  auto results = submit_all(*state_, std::move(requests));
  auto handle = std::make_shared<WorkflowHandleState>(state_, std::string(workflow_id),
                                                      detail::started_or_refused(std::move(results.at(0))));
  handle->receipt();  // a refusal is thrown here and now
  return WorkflowHandle(std::move(handle));
}

void App::start_json_async(std::string_view type, std::string_view workflow_id, std::string input_json,
                           const SubmitOptions& options, Started started) {
  const std::shared_ptr<AppState> state = detail::unowned(state_);
  SubmitRequest request = start_request(*state, type, workflow_id, input_json, options);
  submit_one(*state, std::move(request),
             [state, id = std::string(workflow_id), started = std::move(started)](auto answer) {
               auto* failure = std::get_if<Error>(&answer);
               auto result = failure ? WorkflowHandleState::Result(std::move(*failure))
                                     : detail::started_or_refused(std::get<SubmitResult>(std::move(answer)));
               started(WorkflowHandle(std::make_shared<WorkflowHandleState>(state, id, std::move(result))));
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

void App::work(const WorkOptions& options) {
  detail::Worker worker(*state_, options);
  worker.run();
}

void App::stop() { state_->stop_requested = true; }

}  // namespace hapax
