// The workflow of an activity that sends a signal. The engine runs its turns itself, as those of task lists: the first
// sends the signal, in one commit with the step that says so; the second says what became of it.
#pragma once

#include <vector>

#include "engine/engine.h"

namespace hapax {

// The turn that follows from the history of such a run: all of its events, oldest first.
TurnRequest event_signal_turn(const Execution& run, const std::vector<Event>& history);

}  // namespace hapax
