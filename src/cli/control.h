// Operations on tasks and workflows, each done once per request key.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/target.h"
#include "store/store.h"

namespace hapax {

// The flags that every operation has. Must live as long as the command they were added to.
struct ControlFlags {
  TargetFlags target;
  std::string id, request_key;

  // Adds --request-key and the target's flags.
  void add(CLI::App& command);
};

// A request for the operation under the flags' request key, or a new one. Throws CommandError for a bad one.
ControlRequest control_request(const ControlFlags& flags, ControlRequest::Action action);

// Runs the operation, prints its outcome, and returns the exit code. The request names its target.
int run_control(const Program& program, const ControlFlags& flags, const Target& target, ControlRequest request);

}  // namespace hapax
