// From a firing of an activity to the workflow that it starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/activity.h"
#include "core/cloud_event.h"
#include "engine/engine.h"

namespace hapax {

// The workflow that runs an activity's list of tasks, and its queue. The engine itself runs its turns: see task_list.h.
inline constexpr std::string_view kTaskListType = "hapax.tasks";
inline constexpr std::string_view kTaskListQueue = "hapax.activities";
// The workflow that sends an activity's signal, in the same queue: see event_signal.h.
inline constexpr std::string_view kSignalType = "hapax.signal";

// What a run sees of its firing, besides the activity's input.
struct FiringInput {
  std::optional<Time> scheduled_for = std::nullopt;
  std::optional<Window> window = std::nullopt;
  const CloudEvent* event = nullptr;
};

// The submission of the run of that firing: under its deterministic id.
SubmitRequest run_request(std::string_view activity, const ActivitySettings& settings, std::string_view occurrence,
                          const FiringInput& firing);

// The event that the run was started by, as its input has it. Nothing if no event did, or if the run is purged.
std::optional<EventHash> event_of_run(const Execution& run);

}  // namespace hapax
