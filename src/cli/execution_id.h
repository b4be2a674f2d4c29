// Ids on the command line.
#pragma once

#include <fmt/format.h>

#include <string>

#include "cli/command.h"
#include "core/id.h"

namespace hapax {

// Throws CommandError for a text that is not an id.
inline ExecutionId require_id(const std::string& text) {
  const auto id = ExecutionId::parse(text);
  if (!id) {
    throw CommandError(kUsage, fmt::format("\"{}\" is no task id; one looks like 019bf2d4-1c2d-7e3f-8a4b-5c6d7e8f9a0b "
                                           "(hapax list shows them)",
                                           text));
  }
  return *id;
}

inline CommandError task_not_found(const std::string& id) {
  return CommandError(kNotFound,
                      fmt::format("there is no task {}; is it another namespace's, or past its retention?", id));
}

inline CommandError execution_not_found(const std::string& id) {
  return CommandError(
      kNotFound, fmt::format("there is no task or workflow {}; is it another namespace's, or past its retention?", id));
}

}  // namespace hapax
