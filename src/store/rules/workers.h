// Workers that announce themselves: what every store keeps of them, and what they claim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/worker_info.h"

namespace hapax::rules {

// Names of workers come from outside: of a namespace only so many are kept, those that were seen last.
inline constexpr std::int64_t kMostWorkers = 10'000;
// A worker is forgotten so long after it was last seen.
inline constexpr Duration kWorkerMemory = std::chrono::hours(1);
// What workers hold is counted up to so many executions of a namespace.
inline constexpr std::int64_t kMostHeld = 10'000;

// Whether it claims what is of the execution's kind from its queue; and of its type as well.
bool claims_queue_of(const WorkerInfo& worker, const Execution& execution);
bool claims(const WorkerInfo& worker, const Execution& execution);

// Names as one text, with a newline before and after each: no name has one within. No names are an empty text.
std::string join_names(const std::vector<std::string>& names);
std::vector<std::string> split_names(std::string_view joined);
std::string within_names(std::string_view name);  // what a text has in it where the name is among its names

}  // namespace hapax::rules
