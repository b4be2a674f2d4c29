#include "hapax/handle.h"
#include "core/json_writer.h"
#include "sdk/app_state.h"
#include "wire/write_answer.h"

namespace hapax {

namespace detail {

const Receipt& HandleState::receipt() const {
  if (const auto* failure = std::get_if<Error>(&result_)) throw *failure;
  return std::get<Receipt>(result_);
}

namespace {

// The longest single wait: servers refuse longer ones.
constexpr Duration kWaitStep{30'000};

Execution wait_step(const HandleState& handle, Duration wait) {
  AppState& app = handle.app();
  auto execution = translating([&] {
    return await<std::optional<Execution>>([&](auto reply) {
      app.engine().wait_closed(app.name_space(), handle.id(), std::min(wait, kWaitStep), std::move(reply));
    });
  });
  if (!execution) {
    throw Error("TaskNotFound", "the task " + handle.id().to_string() + " is gone: its retention is over");
  }
  return *std::move(execution);
}

bool control(const HandleState& handle, ControlRequest::Action action, std::string_view request_key) {
  AppState& app = handle.app();
  ControlRequest request;
  request.name_space = app.name_space();
  request.request_key = request_key;
  request.action = action;
  request.target = handle.id();
  const auto outcome = translating([&] {
    return await<ControlOutcome>([&](auto reply) { app.engine().control(std::move(request), std::move(reply)); });
  });
  if (outcome.kind != ControlOutcome::Kind::done) throw to_error(outcome, handle.id().to_string(), Kind::task);
  return outcome.changed;
}

}  // namespace

}  // namespace detail

std::string AnyHandle::id() const { return state_->id().to_string(); }

bool AnyHandle::created() const { return state_->receipt().created; }

std::optional<std::chrono::system_clock::time_point> AnyHandle::deduplicated_from() const {
  const Receipt& receipt = state_->receipt();
  if (receipt.created) return {};
  return receipt.execution.created_at;
}

std::string AnyHandle::status() const { return std::string(to_string(detail::wait_step(*state_, Duration(0)).status)); }

bool AnyHandle::wait_for(Milliseconds duration) const {
  const auto until = std::chrono::steady_clock::now() + std::min<Milliseconds>(duration, std::chrono::days(36'525));
  for (;;) {
    const auto left = std::chrono::ceil<Duration>(until - std::chrono::steady_clock::now());
    if (is_closed(detail::wait_step(*state_, std::max(left, Duration(0))).status)) return true;
    if (left <= Duration(0)) return false;
  }
}

std::string AnyHandle::result_json() const {
  for (;;) {
    const Execution execution = detail::wait_step(*state_, detail::kWaitStep);
    const std::string type = execution.error ? execution.error->type : "";
    const std::string message = execution.error ? execution.error->message : "";
    switch (execution.status) {
      case Status::completed: return execution.result.value_or("");
      case Status::failed: throw TaskFailed("TaskFailed", type, message);
      case Status::cancelled: throw TaskFailed("TaskCancelled", type, message.empty() ? "it was cancelled" : message);
      case Status::timed_out: throw TaskFailed("TaskTimedOut", type, message);
      default: break;
    }
  }
}

bool AnyHandle::cancel(const RequestKey& request) const {
  return detail::control(*state_, ControlRequest::Action::cancel, request.text);
}

bool AnyHandle::retry(const RequestKey& request) const {
  return detail::control(*state_, ControlRequest::Action::retry, request.text);
}

std::string AnyHandle::receipt_json() const {
  JsonWriter out;
  wire::write_receipt(out, state_->receipt());
  return out.take();
}

}  // namespace hapax
