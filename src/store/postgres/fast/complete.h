// Closing tasks that are reported as completed, all of them by one statement. It stands for rules::finish() on a report
// of success under the current lease, for a task that concerns no workflow, has no concurrency key and is retained.
#pragma once

#include <span>
#include <vector>

#include "store/postgres/connection/runner.h"

namespace hapax::postgres::fast {

// How the row of a report is found: at the place where this process has claimed it, or by its id.
enum class By { location, id };

// Gives back which of the reports are still to be decided.
std::vector<std::size_t> complete(Runner& runner, By by, std::span<const Report> reports,
                                  const std::vector<std::size_t>& items, std::vector<FinishOutcome>& outcomes);

}  // namespace hapax::postgres::fast
