// Error codes of the API, both ways.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace hapax::wire {

// Tasks and workflows have different codes for "already exists"; both are read back as the same value.
std::string_view to_string(Refusal::Code code, Kind of = Kind::task);
std::optional<Refusal::Code> parse_refusal_code(std::string_view word);
inline bool names_workflow(std::string_view word) { return word.starts_with("Workflow"); }

// A control operation that was not done: the code, and a sentence. For every kind but `done`. `target` is the id as the
// caller wrote it; `steps` is how far the workflow has come, for no_such_step.
std::string_view to_string(ControlOutcome::Kind kind, Kind of = Kind::task);
std::string describe(ControlOutcome::Kind kind, std::string_view target, Kind of = Kind::task, std::int32_t steps = 0);
inline std::string describe(ControlOutcome::Kind kind, const ExecutionId& target) {
  return describe(kind, target.to_string());
}
std::optional<ControlOutcome::Kind> parse_control_error(std::string_view word);

// What decides a type's identity.
std::string_view to_string(TypeIdentity::Source source);
std::optional<TypeIdentity::Source> parse_identity_source(std::string_view word);

// An update whose workflow was closed before it answered.
std::string closed_before_answer(std::string_view workflow_id);

}  // namespace hapax::wire
