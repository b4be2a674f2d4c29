// What a program's code threw, as something that can be kept and sent: short enough, and UTF-8.
#pragma once

#include <exception>
#include <string>

#include "core/execution.h"

namespace hapax::detail {

// `type` is the name of the exception's class; Hapax's own are told without their namespace.
AttemptError thrown(const std::exception& error);

// Of something that is no std::exception.
AttemptError thrown_unknown();

AttemptError presentable_error(std::string type, std::string message);

}  // namespace hapax::detail
