// A workflow's history for people: what its code asked for, step by step, what came of it, and how long that took.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/paint.h"
#include "core/workflow.h"

namespace hapax {

// Lines with their ends. What has no outcome yet is told as waiting, up to `now`, while the run is open. Where a width
// is given no line is wider.
std::string render_timeline(const Execution& run, const std::vector<Event>& events, Time now, const Paint& paint,
                            std::optional<std::size_t> width = {});

}  // namespace hapax
