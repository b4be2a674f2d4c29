#include <algorithm>

#include "core/canonical_json.h"
#include "core/hash.h"
#include "core/json_writer.h"
#include "hapax/listing.h"
#include "hapax/workflow_handle.h"
#include "sdk/app_state.h"
#include "wire/event.h"

namespace hapax {

namespace detail {

namespace {

// The longest single wait: servers refuse longer ones.
constexpr Duration kWaitStep{30'000};
constexpr std::int32_t kHistoryPage = 1000;

[[noreturn]] void gone(const std::string& workflow_id) {
  throw Error("WorkflowNotFound", "the workflow '" + workflow_id + "' is gone: its retention is over");
}

Execution wait_step(const WorkflowHandleState& handle, Duration wait) {
  AppState& app = handle.app();
  auto run = translating([&] {
    return await<std::optional<Execution>>([&](auto reply) {
      app.engine().wait_workflow(app.name_space(), handle.workflow_id(), std::min(wait, kWaitStep), std::move(reply));
    });
  });
  if (!run) gone(handle.workflow_id());
  return *std::move(run);
}

ControlOutcome control(const WorkflowHandleState& handle, ControlRequest request) {
  AppState& app = handle.app();
  request.name_space = app.name_space();
  request.workflow_id = handle.workflow_id();
  const auto outcome = translating([&] {
    return await<ControlOutcome>([&](auto reply) { app.engine().control(std::move(request), std::move(reply)); });
  });
  if (outcome.kind == ControlOutcome::Kind::done) return outcome;
  throw to_error(outcome, handle.workflow_id(), Kind::workflow);
}

ControlRequest control_request(ControlRequest::Action action, std::string_view request_key) {
  ControlRequest request;
  request.action = action;
  request.request_key = request_key;
  return request;
}

}  // namespace

std::variant<Receipt, Error> received_or_refused(SubmitResult&& result, Kind of) {
  if (const auto* refusal = std::get_if<Refusal>(&result)) return to_error(*refusal, of);
  return std::get<Receipt>(std::move(result));
}

const Receipt& WorkflowHandleState::receipt() const {
  if (const auto* failure = std::get_if<Error>(&result_)) throw *failure;
  return std::get<Receipt>(result_);
}

const Execution* WorkflowHandleState::end() const {
  if (!end_) return nullptr;
  if (const auto* failure = std::get_if<Error>(&*end_)) throw *failure;
  return &std::get<Execution>(*end_);
}

namespace {

using Told = std::function<void(std::shared_ptr<WorkflowHandleState>)>;

// Waits again until it is closed, without its own thread.
void await_end(const std::shared_ptr<WorkflowHandleState>& started, const Told& told) {
  AppState& app = started->app();
  app.engine().wait_workflow(app.name_space(), started->workflow_id(), kWaitStep,
                             [started, told](Answer<std::optional<Execution>> answer) {
                               std::optional<WorkflowHandleState::End> end;
                               try {
                                 auto run = translating([&] { return std::move(answer).get(); });
                                 if (!run) gone(started->workflow_id());
                                 if (!is_closed(run->status)) return await_end(started, told);
                                 end = *std::move(run);
                               } catch (const Error& failure) {
                                 end = failure;
                               }
                               told(std::make_shared<WorkflowHandleState>(*started, *std::move(end)));
                             });
}

}  // namespace

}  // namespace detail

using detail::control;
using detail::control_request;

std::string AnyWorkflowHandle::workflow_id() const { return state_->workflow_id(); }

std::string AnyWorkflowHandle::run_id() const { return state_->receipt().execution.id.to_string(); }

bool AnyWorkflowHandle::created() const { return state_->receipt().created; }

std::optional<std::chrono::system_clock::time_point> AnyWorkflowHandle::deduplicated_from() const {
  if (created()) return {};
  return state_->receipt().execution.created_at;
}

std::string AnyWorkflowHandle::status() const {
  return std::string(to_string(detail::wait_step(*state_, Duration(0)).status));
}

bool AnyWorkflowHandle::wait_for(Milliseconds duration) const {
  const auto until = std::chrono::steady_clock::now() + std::min<Milliseconds>(duration, std::chrono::days(36'525));
  for (;;) {
    const auto left = std::chrono::ceil<Duration>(until - std::chrono::steady_clock::now());
    if (is_closed(detail::wait_step(*state_, std::max(left, Duration(0))).status)) return true;
    if (left <= Duration(0)) return false;
  }
}

std::string AnyWorkflowHandle::result_json() const {
  for (;;) {
    const Execution* known = state_->end();
    const Execution run = known ? *known : detail::wait_step(*state_, detail::kWaitStep);
    const std::string type = run.error ? run.error->type : "";
    const std::string message = run.error ? run.error->message : "";
    switch (run.status) {
      case Status::completed: return run.result.value_or("");
      case Status::failed: throw TaskFailed("WorkflowFailed", type, message);
      case Status::cancelled:
        throw TaskFailed("WorkflowCancelled", type, message.empty() ? "it was cancelled" : message);
      case Status::timed_out: throw TaskFailed("WorkflowTimedOut", type, message);
      default: break;
    }
  }
}

void AnyWorkflowHandle::when_closed(std::function<void(AnyWorkflowHandle)> done) const {
  const auto started = state_->unowned();
  const detail::Told told = [done = std::move(done)](std::shared_ptr<detail::WorkflowHandleState> closed) {
    done(AnyWorkflowHandle(std::move(closed)));
  };
  if (const Error* failure = started->failure()) {
    told(std::make_shared<detail::WorkflowHandleState>(*started, *failure));
  } else {
    detail::await_end(started, told);
  }
}

bool AnyWorkflowHandle::cancel(const RequestKey& request_key) const {
  return control(*state_, control_request(ControlRequest::Action::cancel, request_key.text)).changed;
}

bool AnyWorkflowHandle::request_cancel_json(const std::string& reason_json, const RequestKey& request_key,
                                            std::optional<Milliseconds> grace) const {
  ControlRequest request = control_request(ControlRequest::Action::cancel, request_key.text);
  request.asks = true;
  request.payload = canonical_json(detail::parse_document(reason_json));
  request.grace = grace;
  return control(*state_, std::move(request)).changed;
}

namespace detail {

namespace {

WorkflowVerbs::Values values_of(const WorkflowHandleState& handle) {
  auto values =
      translating([&] { return handle.app().engine().values(handle.app().name_space(), handle.workflow_id()); });
  if (!values) gone(handle.workflow_id());
  return *std::move(values);
}

}  // namespace

}  // namespace detail

std::string AnyWorkflowHandle::values_json() const {
  JsonWriter out;
  out.begin_object();
  for (const auto& [name, value] : detail::values_of(*state_)) out.key(name).raw(value);
  return out.end_object().take();
}

std::optional<std::string> AnyWorkflowHandle::value_json(std::string_view name) const {
  const WorkflowVerbs::Values values = detail::values_of(*state_);
  const auto found = values.find(std::string(name));
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

bool AnyWorkflowHandle::resume(const RequestKey& request_key) const {
  return control(*state_, control_request(ControlRequest::Action::resume, request_key.text)).changed;
}

AnyWorkflowHandle AnyWorkflowHandle::fork(std::int32_t from_step, const RequestKey& request_key,
                                          std::string_view workflow_id) const {
  ControlRequest request = control_request(ControlRequest::Action::fork, request_key.text);
  request.from_step = from_step;
  request.fork_workflow_id =
      workflow_id.empty() ? fork_workflow_id(this->workflow_id(), request_key.text) : std::string(workflow_id);
  const std::string new_id = request.fork_workflow_id;
  const ControlOutcome outcome = control(*state_, std::move(request));
  Receipt receipt;
  receipt.created = !outcome.replayed;
  receipt.execution.id = outcome.execution.value_or(ExecutionId{});
  return AnyWorkflowHandle(
      std::make_shared<detail::WorkflowHandleState>(state_->shared_app(), new_id, std::move(receipt)));
}

void AnyWorkflowHandle::send_signal(std::string_view name, const std::string& payload_json,
                                    const RequestKey& request_key) const {
  ControlRequest request = control_request(ControlRequest::Action::signal, request_key.text);
  request.signal = name;
  if (!payload_json.empty()) request.payload = canonical_json(detail::parse_document(payload_json));
  control(*state_, std::move(request));
}

namespace detail {

std::vector<Step> steps_of(AppState& app, const ExecutionId& run);  // in listing.cpp

namespace {

Execution latest_run(const WorkflowHandleState& handle) {
  AppState& app = handle.app();
  auto run = translating([&] { return app.engine().find_workflow(app.name_space(), handle.workflow_id()); });
  if (!run) gone(handle.workflow_id());
  return *std::move(run);
}

void write_history(JsonWriter& out, AppState& app, const ExecutionId& run) {
  out.begin_array();
  for (std::int64_t after = 0;;) {
    const auto page = translating([&] { return app.engine().history(app.name_space(), run, after, kHistoryPage); });
    if (page.empty()) break;
    for (const Event& event : page) wire::write_event(out, event);
    after = page.back().no;
  }
  out.end_array();
}

}  // namespace

}  // namespace detail

std::string AnyWorkflowHandle::history_json() const {
  JsonWriter out;
  detail::write_history(out, state_->app(), detail::latest_run(*state_).id);
  return out.take();
}

std::string AnyWorkflowHandle::export_json() const {
  const Execution run = detail::latest_run(*state_);
  JsonWriter out;
  out.begin_object().key("workflow_id").string(workflow_id()).key("execution_id").string(run.id.to_string());
  out.key("type").string(run.type).key("status").string(to_string(run.status)).key("input").string(run.input);
  out.key("created_at").string(format_time(run.created_at)).key("events");
  detail::write_history(out, state_->app(), run.id);
  return out.end_object().take();
}

std::vector<Step> AnyWorkflowHandle::steps() const {
  return detail::steps_of(state_->app(), detail::latest_run(*state_).id);
}

}  // namespace hapax
