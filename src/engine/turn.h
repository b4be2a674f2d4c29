// Workflows, from what a worker or caller says to what the store is told.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/claim.h"
#include "engine/engine.h"
#include "engine/local_engine.h"
#include "engine/settings_book.h"
#include "engine/wait_closed.h"

namespace hapax {

// The turn with every setting of its tasks and children decided. A step that the rules refuse has failed at once. `id`
// is for the next run, if the workflow continues as new.
Turn resolve_turn(TurnRequest request, const SettingsBook& settings, const EngineOptions& options,
                  const ExecutionId& id);

// A task that a turn asks for as an execution whose first attempt is running, and what the turn's commit is to say of
// it. Nothing if anything but its turn decides when it is claimed.
std::optional<Execution> begin_step(const Execution& run, const BeginCall& call, TurnRequest::Command& command,
                                    const SettingsBook& settings, const EngineOptions& options, const ClaimDesk& claims,
                                    Time now);
std::int64_t steps_begun(const Turn& turn);
std::int64_t steps_completed(const Turn& turn);  // of those

// Fills in what the caller of a control operation need not say: the fingerprint of its parameters; the workflow id,
// identity and run of a fork.
void resolve_control(ControlRequest& request, const EngineOptions& options, const ExecutionId& id);

// The run of that workflow id that counts.
std::optional<Execution> find_workflow(Store& store, const std::string& name_space, const std::string& workflow_id);

// Waits for the run that `find` gives, and for those that it continues as. `find` reads, so it runs on the `reader`;
// where the desk knows the run of that workflow id, it need not.
std::shared_ptr<Waiting> wait_for_runs(ResultDesk& results, Timer& reader, const std::string& name_space,
                                       const std::string& workflow_id, Duration wait,
                                       Reply<std::optional<Execution>> reply,
                                       std::function<std::optional<Execution>()> find);

}  // namespace hapax
