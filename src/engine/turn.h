// Workflows: from a worker's or caller's request to store calls.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/claim.h"
#include "engine/engine.h"
#include "engine/known_settings.h"
#include "engine/local_engine.h"
#include "engine/wait_closed.h"

namespace hapax {

// The turn with every setting of its tasks and children decided. A step that the rules refuse has failed at once. `id`
// is for the next run, if the workflow continues as new. Nothing if a step was begun within it that may not begin so.
std::optional<Turn> resolve_turn(TurnRequest request, const KnownSettings& settings, const EngineOptions& options,
                                 const ExecutionId& id);

// A task that a turn asks for as an execution whose first attempt is running, and what the turn's commit is to say of
// it. Nothing if anything but its turn decides when it is claimed.
std::optional<Execution> begin_within_turn(const Execution& run, const TurnWorker& call, TurnRequest::Command& command,
                                           const KnownSettings& settings, const EngineOptions& options,
                                           const ClaimDesk& claims, Time now);
// What the same rules allow a worker elsewhere.
StepsWithinTurns steps_within_turns(const std::string& name_space, const std::vector<std::string>& queues,
                                    const std::vector<std::string>& types, const KnownSettings& settings,
                                    const EngineOptions& options, const ClaimDesk& claims);
std::int64_t steps_begun(const Turn& turn);
std::int64_t steps_completed(const Turn& turn);  // of those

// Fills in what the caller of a control operation need not give: the fingerprint of its parameters; the workflow id,
// identity and run of a fork.
void resolve_control(ControlRequest& request, const EngineOptions& options, const ExecutionId& id);

// The current run of that workflow id.
std::optional<Execution> find_workflow(Store& store, const std::string& name_space, const std::string& workflow_id);

// Waits for the run that `find` returns, and for those that it continues as. `find` reads, so it runs on the `reader`;
// it is not called if the desk knows the run of that workflow id.
std::shared_ptr<Waiting> wait_for_runs(ResultDesk& results, Timer& reader, const std::string& name_space,
                                       const std::string& workflow_id, Duration wait,
                                       Reply<std::optional<Execution>> reply,
                                       std::function<std::optional<Execution>()> find);

}  // namespace hapax
