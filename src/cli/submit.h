// Submitting a task and starting a workflow: the same except for the words.
#pragma once

#include <string>

#include "cli/command.h"
#include "core/execution.h"

namespace hapax {

void add_submission(CLI::App& app, const Program& program, Action& action, const std::string& name,
                    const std::string& description, Kind kind);

}  // namespace hapax
