// Updates: the handlers of a workflow's code, and the handle's call.
#include <algorithm>

#include "core/canonical_json.h"
#include "core/update.h"
#include "engine/check_request.h"
#include "hapax/workflow.h"
#include "hapax/workflow_handle.h"
#include "sdk/app_state.h"
#include "sdk/thrown.h"
#include "sdk/workflow_run.h"
#include "wire/error_code.h"

namespace hapax {

namespace detail {

namespace {

constexpr Duration kWaitStep{30'000};  // the longest single wait: servers refuse longer ones

Event wait_for(const std::string& name) {
  Event command;
  command.kind = Event::Kind::wait_signal;
  command.name = update_signal(name);
  return command;
}

UpdateAnswer run(const std::function<std::string(const std::string&)>& function, const std::string& payload) {
  try {
    const std::string result = function(payload);
    return {result.empty() ? std::nullopt : std::optional(canonical_json(parse_document(result))), std::nullopt};
  } catch (const CancelRequested&) {
    throw;  // it is the workflow's, which ends with it
  } catch (const std::exception& error) {
    return {std::nullopt, thrown(error)};
  }
}

}  // namespace

void WorkflowRun::on_update(std::string_view name, std::function<std::string(const std::string&)> handler) {
  check_usable();
  if (const auto wrong = check_update_name(name)) throw Error("InvalidRequest", "an update's name " + *wrong);
  for (const UpdateHandler& other : handlers_) {
    if (other.name == name) throw Error("InvalidRequest", "the update '" + other.name + "' has a handler already");
  }
  handlers_.push_back({std::string(name), std::move(handler), 0});
  handlers_.back().step = ask(wait_for(handlers_.back().name));
}

// Handles the earliest update that arrived before that event. So it is handled where the history has it, at every
// replay: before what the code waits for, if that came later.
bool WorkflowRun::answer_update(std::int64_t before) {
  if (in_handler_) return false;
  UpdateHandler* earliest = nullptr;
  std::int64_t earliest_no = before;
  for (UpdateHandler& handler : handlers_) {
    const auto received = outcomes_.find(handler.step);
    if (received == outcomes_.end() || received->second.no >= earliest_no) continue;
    earliest = &handler;
    earliest_no = received->second.no;
  }
  if (!earliest) return false;
  const auto update = read_update(outcomes_.at(earliest->step).value);
  if (update) {
    in_handler_ = true;
    Event command;
    command.kind = Event::Kind::publish;
    command.name = hapax::update_answer(update->request_key);
    try {
      command.value = write_answer(run(earliest->function, update->payload));
    } catch (...) {
      in_handler_ = false;
      throw;
    }
    in_handler_ = false;
    ask(std::move(command));
  }
  earliest->step = ask(wait_for(earliest->name));
  return true;
}

}  // namespace detail

void Context::on_update(std::string_view name, std::function<std::string(const std::string&)> handler) {
  run_.on_update(name, std::move(handler));
}

std::string AnyWorkflowHandle::update_json(std::string_view name, const std::string& payload_json,
                                           const RequestKey& request_key) const {
  detail::AppState& app = state_->app();
  UpdateRequest request{app.name_space(), workflow_id(), std::string(name), request_key.text};
  if (!payload_json.empty()) request.payload = canonical_json(detail::parse_document(payload_json));
  for (;;) {
    const auto outcome = detail::translating([&] {
      return await<UpdateOutcome>(
          [&](auto reply) { app.engine().update(request, detail::kWaitStep, std::move(reply)); });
    });
    if (outcome.delivery.kind != ControlOutcome::Kind::done) {
      throw detail::to_error(outcome.delivery, workflow_id(), Kind::workflow);
    }
    switch (outcome.state) {
      case UpdateOutcome::State::answered: return outcome.result.value_or("");
      case UpdateOutcome::State::refused:
        throw TaskFailed("UpdateRefused", outcome.error->type, outcome.error->message);
      case UpdateOutcome::State::closed: throw Error("WorkflowClosed", wire::closed_before_answer(workflow_id()));
      case UpdateOutcome::State::pending: break;
    }
  }
}

}  // namespace hapax
