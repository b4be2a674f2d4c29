// A workflow's history for people: commands, outcomes and durations, step by step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/paint.h"
#include "core/workflow.h"

namespace hapax {

// What is told of the tasks and children of steps, by step.
using StepExecutions = std::map<std::int32_t, Execution>;

// Lines with newlines. A step without an outcome is shown as waiting, up to `now`, while the run is open. If a width is
// given, no line is wider.
std::string render_timeline(const Execution& run, const std::vector<Event>& events, const StepExecutions& steps,
                            Time now, const Paint& paint, std::optional<std::size_t> width = {});

}  // namespace hapax
