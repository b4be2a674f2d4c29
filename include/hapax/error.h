// What the library throws, and what a handler may throw.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace hapax {

// A request to Hapax failed. `code` is the error code of the HTTP API: IdempotencyConflict, TaskAlreadyExists,
// TaskAlreadyCompleted, InvalidRequest, TaskNotFound, StoreUnavailable, … what() is a sentence for people.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message, bool safe_to_retry = false)
      : std::runtime_error(message), code_(std::move(code)), safe_to_retry_(safe_to_retry) {}

  const std::string& code() const { return code_; }

  // The same call may work later, and with an idempotency key it cannot do the work twice.
  bool safe_to_retry() const { return safe_to_retry_; }

 private:
  std::string code_;
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
// - The step's value (a result, a signal's payload, a recorded value) does not have the type that the code reads it as:
//   StepMismatch. `status` is "failed", `type` InvalidJson, `pointer` the place that did not fit, as a JSON Pointer (""
//   is the whole), and `message` says what was expected there.
class StepFailed : public Error {
 public:
  StepFailed(std::string code, std::string status, std::string type, std::string message, const std::string& what,
             std::int32_t step = 0, std::string name = {}, std::string pointer = {})
      : Error(std::move(code), what),
        status_(std::move(status)),
        type_(std::move(type)),
        message_(std::move(message)),
        step_(step),
        name_(std::move(name)),
        pointer_(std::move(pointer)) {}

  const std::string& status() const { return status_; }
  const std::string& type() const { return type_; }
  const std::string& message() const { return message_; }

  std::int32_t step() const { return step_; }  // its number, from 1
  const std::string& name() const {
    return name_;
  }  // the type of the task or child, the name of the signal or side effect
  const std::string& pointer() const { return pointer_; }

 private:
  std::string status_, type_, message_;
  std::int32_t step_;
  std::string name_, pointer_;
};

// For handlers: throw it when trying again is useless (the card was declined). The task fails at once, whatever
// attempts are left. Any other exception means: try again later.
class FinalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// For handlers: throw it to acknowledge a cancel that TaskContext::cancel_requested() reported.
class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled on request") {}
};

}  // namespace hapax
