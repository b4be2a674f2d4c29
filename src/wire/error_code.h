// The words of the API for what is refused, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace hapax::wire {

std::string_view to_string(Refusal::Code code);
std::optional<Refusal::Code> parse_refusal_code(std::string_view word);

// A control operation that was not done: the word, and a sentence. For every kind but `done`.
std::string_view to_string(ControlOutcome::Kind kind);
std::string describe(ControlOutcome::Kind kind, std::string_view target);
inline std::string describe(ControlOutcome::Kind kind, const ExecutionId& target) {
  return describe(kind, target.to_string());
}
std::optional<ControlOutcome::Kind> parse_control_error(std::string_view word);

}  // namespace hapax::wire
