// Finds tasks and workflows by their names on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/engine.h"

namespace hapax {

// The execution with that id; else the latest run of the workflow with that id. Nothing if there is neither.
std::optional<Execution> find_execution(Engine& engine, const std::string& name_space, const std::string& text);

// Throws CommandError for a text that cannot be a workflow id.
void require_workflow_id(const std::string& flag, const std::string& text);

// All of a run's history.
std::vector<Event> read_history(Engine& engine, const std::string& name_space, const ExecutionId& run);

CommandError workflow_not_found(const std::string& workflow_id);

}  // namespace hapax
