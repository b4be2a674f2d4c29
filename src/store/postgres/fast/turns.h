// Committing turns in which nobody else has a part, all of them by one statement. It stands for rules::commit_turn() on
// a turn that goes on or completes its run and has asked for nothing but side effects, versions and steps that were
// completed within it. Such a step is a row of its own kind, which says all that its two events say.
#pragma once

#include <span>
#include <vector>

#include "store/postgres/connection/runner.h"

namespace hapax::postgres::fast {

// Gives back which of the turns are still to be decided.
std::vector<std::size_t> commit_turns(Runner& runner, std::span<const Turn> turns, std::vector<TurnOutcome>& outcomes);

}  // namespace hapax::postgres::fast
