// What the library throws, and what a handler may throw.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "hapax/detail/durations.h"

namespace hapax {

// What an error says beside its code and message, as the HTTP API's error bodies do. Empty where it does not apply.
struct ErrorDetails {
  std::string pointer = {};    // what is wrong in the request, as a JSON Pointer: "/max_attempts", "/retry/factor"
  std::string parameter = {};  // or the name of it, where the HTTP API has it in the path or query: "name", "limit"
  std::string header = {};     // or in a header: "Idempotency-Key" for a request key

  // TaskAlreadyExists, TaskAlreadyCompleted and IdempotencyConflict (and the same of Workflow): what is there already.
  std::string existing_execution_id = {};
  std::string status = {};
  std::optional<std::chrono::system_clock::time_point> completed_at = {};  // TaskAlreadyCompleted
  std::optional<std::string> result_json = {};                             // likewise, if it has a result

  // IdempotencyConflict: of this request and of what is there, as "sha256:…".
  std::string input_hash = {}, existing_input_hash = {};
};

// A request to Hapax failed. `code` is the error code of the HTTP API: IdempotencyConflict, TaskAlreadyExists,
// TaskAlreadyCompleted, InvalidRequest, TaskNotFound, StoreUnavailable, … what() is a sentence for people. It is the
// same on a store and on a server.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message, ErrorDetails details = {}, bool safe_to_retry = false)
      : std::runtime_error(message),
        code_(std::move(code)),
        details_(std::move(details)),
        safe_to_retry_(safe_to_retry) {}

  const std::string& code() const { return code_; }
  const ErrorDetails& details() const { return details_; }

  // Of the details, by themselves.
  const std::string& pointer() const { return details_.pointer; }
  const std::string& existing_execution_id() const { return details_.existing_execution_id; }
  const std::string& status() const { return details_.status; }
  const std::optional<std::chrono::system_clock::time_point>& completed_at() const { return details_.completed_at; }
  const std::optional<std::string>& result_json() const { return details_.result_json; }
  const std::string& input_hash() const { return details_.input_hash; }
  const std::string& existing_input_hash() const { return details_.existing_input_hash; }

  // The same call may work later, and with an idempotency key it cannot do the work twice.
  bool safe_to_retry() const { return safe_to_retry_; }

 private:
  std::string code_;
  ErrorDetails details_;
  bool safe_to_retry_;
};

// Thrown by Handle::result(): the task closed without a result. code() is TaskFailed, TaskCancelled or TaskTimedOut, of
// a workflow WorkflowFailed, WorkflowCancelled or WorkflowTimedOut; `type` and what() are those of the last attempt's
// error.
class TaskFailed : public Error {
 public:
  TaskFailed(std::string code, std::string type, const std::string& message)
      : Error(std::move(code), message), type_(std::move(type)) {}

  const std::string& type() const { return type_; }

 private:
  std::string type_;
};

// Thrown to the code of a workflow: a step of it gave nothing that the code can use.
//
// - A task or child workflow did not complete. code() is TaskFailed, TaskCancelled, TaskTimedOut, or the same of
//   Workflow; `status` is "failed", "cancelled" or "timed_out"; `type` and `message` are those of the step's own error.
// - A side effect threw: SideEffectFailed, likewise.
// - The step's value does not have the type that the code reads it as: BadPayload, which is below.
class StepFailed : public Error {
 public:
  StepFailed(std::string code, std::string status, std::string type, std::string message, const std::string& what,
             std::int32_t step = 0, std::string name = {}, std::string pointer = {})
      : Error(std::move(code), what, {.pointer = std::move(pointer), .status = std::move(status)}),
        type_(std::move(type)),
        message_(std::move(message)),
        step_(step),
        name_(std::move(name)) {}

  const std::string& type() const { return type_; }
  const std::string& message() const { return message_; }

  // Its number, from 1, and the type of the task or child, or the name of the signal or side effect.
  std::int32_t step() const { return step_; }
  const std::string& name() const { return name_; }

 private:
  std::string type_, message_;
  std::int32_t step_;
  std::string name_;
};

// Thrown to the code of a workflow where it reads a value (a step's result, a signal's payload, a recorded value) that
// does not have the type that it is read as. code() is BadPayload, `status` "failed", `type` InvalidJson, `pointer` the
// place that did not fit, as a JSON Pointer ("" is the whole), and `message` says what was expected there.
class BadPayload : public StepFailed {
 public:
  using StepFailed::StepFailed;
};

// For the code of a workflow: throw it to end the workflow as failed. Any other exception does the same; this one says
// that it is meant.
class WorkflowFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// For handlers: throw it when trying again is useless (the card was declined). The task fails at once, whatever
// attempts are left. Any other exception means: try again later.
class FinalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // With details for programs, as JSON: hapax::to_json(…).
  FinalError(const std::string& message, std::string details_json)
      : std::runtime_error(message), details_json_(std::move(details_json)) {}

  const std::string& details_json() const { return details_json_; }

 private:
  std::string details_json_;
};

// For handlers: this attempt failed, and the next one makes sense only after this time (an API said Retry-After).
class RetryLater : public std::runtime_error {
 public:
  RetryLater(const std::string& message, std::chrono::milliseconds after, std::string details_json = {})
      : std::runtime_error(message), after_(after), details_json_(std::move(details_json)) {}

  std::chrono::milliseconds after() const { return after_; }
  const std::string& details_json() const { return details_json_; }

 private:
  std::chrono::milliseconds after_;
  std::string details_json_;
};

// For handlers: there is nothing to do yet. The task runs again after this time; it is no failure and costs no attempt.
class Snooze : public std::runtime_error {
 public:
  explicit Snooze(std::chrono::milliseconds by) : std::runtime_error("snoozed"), by_(by) {}

  std::chrono::milliseconds by() const { return by_; }

 private:
  std::chrono::milliseconds by_;
};

// For handlers: throw it to acknowledge a cancel that TaskContext::cancel_requested() reported.
class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled on request") {}
};

// Thrown to the code of a workflow after WorkflowHandle::request_cancel(): where it begins its next step, or where it
// waits for something else than tasks. A task that runs is let end first, so that the code can undo it. The code may
// catch it, undo what it did, and end as it likes. If it is not caught, the workflow is cancelled. It is thrown once.
class CancelRequested : public std::runtime_error {
 public:
  explicit CancelRequested(std::string reason_json)
      : std::runtime_error("its cancellation was requested" + (reason_json.empty() ? "" : ": " + reason_json)),
        reason_json_(std::move(reason_json)) {}

  const std::string& reason_json() const { return reason_json_; }  // empty if none was given

 private:
  std::string reason_json_;
};

}  // namespace hapax
