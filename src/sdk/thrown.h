// Exceptions of the program's code, as values to store and send: short enough, and UTF-8.
#pragma once

#include <exception>
#include <string>

#include "core/execution.h"

namespace hapax::detail {

// `type` is the name of the exception's class; Hapax's own come without their namespace.
AttemptError thrown(const std::exception& error);

// For something that is not a std::exception.
AttemptError thrown_unknown();

// At most so many bytes of it.
std::string presentable(std::string text, std::size_t most);
AttemptError presentable_error(std::string type, std::string message);

}  // namespace hapax::detail
