// A server's counters, read from its /metrics.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/target.h"
#include "engine/engine.h"

namespace hapax {

// The counters on the page.
EngineCounters read_metrics(std::string_view page);

// The counters of the target's server; nothing if it has none, or if this process works on the store itself and cannot
// know what others do.
std::optional<EngineCounters> fetch_counters(const Target& target);

// The version of the server at the target's address. Throws Failure if it does not answer.
std::string fetch_version(const Target& target);

}  // namespace hapax
