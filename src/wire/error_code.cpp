#include "wire/error_code.h"

#include <fmt/format.h>

namespace hapax::wire {

namespace {

using Control = ControlOutcome::Kind;

template <class Value, class... Values>
std::optional<Value> find_word(std::string_view word, Value first, Values... rest) {
  if (to_string(first) == word) return first;
  if constexpr (sizeof...(rest) > 0) return find_word(word, rest...);
  return {};
}

}  // namespace

std::string_view to_string(Refusal::Code code) {
  switch (code) {
    case Refusal::Code::invalid_argument: return "InvalidRequest";
    case Refusal::Code::idempotency_key_required: return "IdempotencyKeyRequired";
    case Refusal::Code::identity_field_missing: return "IdentityFieldMissing";
    case Refusal::Code::idempotency_conflict: return "IdempotencyConflict";
    case Refusal::Code::task_already_exists: return "TaskAlreadyExists";
    case Refusal::Code::task_already_completed: return "TaskAlreadyCompleted";
  }
  return {};
}

std::optional<Refusal::Code> parse_refusal_code(std::string_view word) {
  return find_word(word, Refusal::Code::invalid_argument, Refusal::Code::idempotency_key_required,
                   Refusal::Code::identity_field_missing, Refusal::Code::idempotency_conflict,
                   Refusal::Code::task_already_exists, Refusal::Code::task_already_completed);
}

std::string_view to_string(ControlOutcome::Kind kind) {
  switch (kind) {
    case Control::done: return "Done";
    case Control::not_found: return "TaskNotFound";
    case Control::not_retryable: return "TaskNotRetryable";
    case Control::identity_taken: return "IdentityTaken";
    case Control::failed_before: return "RequestFailedBefore";
    case Control::key_conflict: return "IdempotencyConflict";
  }
  return {};
}

std::string describe(ControlOutcome::Kind kind, std::string_view target) {
  switch (kind) {
    case Control::done: return "It is done.";
    case Control::not_found:
      return fmt::format("There is no task with the id '{}' in this namespace.", target);
    case Control::not_retryable: return "Only a failed, cancelled or timed-out task can be retried.";
    case Control::identity_taken: return "The identity of this task belongs to a newer task by now.";
    case Control::failed_before:
      return "The operation under this Idempotency-Key failed before; use another key to try it again.";
    case Control::key_conflict: return "This Idempotency-Key was used for another operation or another task.";
  }
  return {};
}

std::optional<ControlOutcome::Kind> parse_control_error(std::string_view word) {
  return find_word(word, Control::not_found, Control::not_retryable, Control::identity_taken, Control::failed_before,
                   Control::key_conflict);
}

}  // namespace hapax::wire
