// Cancel and retry: the same but for the word.
#pragma once

#include <string>

#include "cli/command.h"
#include "store/store.h"

namespace hapax {

void add_control(CLI::App& app, const Program& program, Action& action, const std::string& name,
                 const std::string& description, ControlRequest::Action what);

}  // namespace hapax
