#include "wire/error_code.h"

#include <fmt/format.h>

namespace hapax::wire {

namespace {

using Control = ControlOutcome::Kind;

template <class Value, class... Values>
std::optional<Value> find_word(std::string_view word, Value first, Values... rest) {
  if (to_string(first) == word || to_string(first, Kind::workflow) == word) return first;
  if constexpr (sizeof...(rest) > 0) return find_word(word, rest...);
  return {};
}

std::string describe_steps(std::int32_t steps) {
  return fmt::format("The workflow has {} step{} so far: from_step must be from 1 to {}.", steps, steps == 1 ? "" : "s",
                     steps + 1);
}

}  // namespace

std::string_view to_string(Refusal::Code code, Kind of) {
  const bool workflow = of == Kind::workflow;
  switch (code) {
    case Refusal::Code::invalid_argument: return "InvalidRequest";
    case Refusal::Code::invalid_id: return "InvalidId";
    case Refusal::Code::idempotency_key_required: return "IdempotencyKeyRequired";
    case Refusal::Code::identity_field_missing: return "IdentityFieldMissing";
    case Refusal::Code::idempotency_conflict: return "IdempotencyConflict";
    case Refusal::Code::task_already_exists: return workflow ? "WorkflowAlreadyExists" : "TaskAlreadyExists";
    case Refusal::Code::task_already_completed: return workflow ? "WorkflowAlreadyCompleted" : "TaskAlreadyCompleted";
    case Refusal::Code::store_corrupt: return "StoreCorrupt";
  }
  return {};
}

std::optional<Refusal::Code> parse_refusal_code(std::string_view word) {
  return find_word(word, Refusal::Code::invalid_argument, Refusal::Code::invalid_id,
                   Refusal::Code::idempotency_key_required, Refusal::Code::identity_field_missing,
                   Refusal::Code::idempotency_conflict, Refusal::Code::task_already_exists,
                   Refusal::Code::task_already_completed, Refusal::Code::store_corrupt);
}

std::string_view to_string(ControlOutcome::Kind kind, Kind of) {
  const bool workflow = of == Kind::workflow;
  switch (kind) {
    case Control::done: return "Done";
    case Control::not_found: return workflow ? "WorkflowNotFound" : "TaskNotFound";
    case Control::not_retryable: return "TaskNotRetryable";
    case Control::identity_taken: return workflow ? "WorkflowAlreadyExists" : "IdentityTaken";
    case Control::not_open: return "WorkflowClosed";
    case Control::no_such_step: return "InvalidRequest";
    case Control::failed_before: return "RequestFailedBefore";
    case Control::key_conflict: return "IdempotencyConflict";
  }
  return {};
}

std::string describe(ControlOutcome::Kind kind, std::string_view target, Kind of, std::int32_t steps) {
  const bool workflow = of == Kind::workflow;
  switch (kind) {
    case Control::done: return "It is done.";
    case Control::not_found:
      return fmt::format("There is no {} with the id '{}' in this namespace.", workflow ? "workflow" : "task", target);
    case Control::not_retryable: return "Only a failed, cancelled or timed-out task can be retried.";
    case Control::identity_taken:
      return workflow ? "That workflow id belongs to another workflow by now."
                      : "The identity of this task belongs to a newer task by now.";
    case Control::not_open: return fmt::format("The workflow '{}' is closed: nobody would hear the signal.", target);
    case Control::no_such_step: return describe_steps(steps);
    case Control::failed_before:
      return "The operation under this Idempotency-Key failed before; use another key to try it again.";
    case Control::key_conflict:
      return fmt::format("This Idempotency-Key was used for another operation, other parameters or another {}.",
                         workflow ? "workflow" : "task");
  }
  return {};
}

std::optional<ControlOutcome::Kind> parse_control_error(std::string_view word) {
  return find_word(word, Control::not_found, Control::not_retryable, Control::identity_taken, Control::not_open,
                   Control::no_such_step, Control::failed_before, Control::key_conflict);
}

std::string_view to_string(TypeIdentity::Source source) {
  switch (source) {
    case TypeIdentity::Source::file: return "file";
    case TypeIdentity::Source::api: return "api";
    case TypeIdentity::Source::code: return "code";
    case TypeIdentity::Source::declared: return "declared";
    case TypeIdentity::Source::undeclared: return "undeclared";
  }
  return {};
}

std::optional<TypeIdentity::Source> parse_identity_source(std::string_view word) {
  for (const auto source : {TypeIdentity::Source::file, TypeIdentity::Source::api, TypeIdentity::Source::code,
                            TypeIdentity::Source::declared, TypeIdentity::Source::undeclared}) {
    if (to_string(source) == word) return source;
  }
  return std::nullopt;
}

std::string closed_before_answer(std::string_view workflow_id) {
  return fmt::format("The workflow '{}' was closed before it answered.", workflow_id);
}

}  // namespace hapax::wire
