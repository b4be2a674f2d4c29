// The workflow that an event's signal goes to: a template such as "order-{/data/order/id}", whose parts in braces are
// JSON Pointers into the event.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/json.h"

namespace hapax {

// What is wrong with the template, as the end of a sentence. Nothing: it is one.
std::optional<std::string> check_signal_target(std::string_view text);

struct NoSignalTarget {
  std::string why;  // a sentence
};
// The workflow id for that event. Texts stand for themselves, numbers and booleans for their JSON.
std::variant<std::string, NoSignalTarget> signal_target(std::string_view text, const Json& event);

}  // namespace hapax
