// What the engine refuses or fails at, as the exceptions of the library.
#pragma once

#include <string_view>

#include "core/failure.h"
#include "core/field.h"
#include "engine/engine.h"
#include "hapax/error.h"

namespace hapax::detail {

Error to_error(const Refusal& refusal, Kind of);
Error to_error(const InvalidField& error);
Error to_error(const Failure& failure);

// Of a control operation that was not done.
Error to_error(const ControlOutcome& outcome, std::string_view target, Kind of);

// Runs what the engine may throw, and throws it as an Error.
template <class Function>
auto translating(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const Failure& failure) {
    throw to_error(failure);
  } catch (const DecidedByFile& refusal) {
    throw Error("DecidedByFile", refusal.what());
  }
}

}  // namespace hapax::detail
