// A server's counters, read from its /metrics.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/target.h"
#include "engine/engine.h"

namespace hapax {

// What the page counts, as far as it does.
EngineCounters read_metrics(std::string_view page);

// The counters of the target: the server's own, or nothing where it does not tell, or where this process works on the
// store itself and cannot know what others do.
std::optional<EngineCounters> fetch_counters(const Target& target);

// The version that the server at the target's address says it is. Throws Failure if it does not answer.
std::string fetch_version(const Target& target);

}  // namespace hapax
