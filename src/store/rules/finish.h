// What a worker reports about its attempt: its outcome, or that it is still running.
#pragma once

#include "store/rules/rows.h"

namespace hapax::rules {

FinishOutcome finish(Rows& rows, const Report& report);
ExtendOutcome extend(Rows& rows, const Extension& extension);

// The same for an execution from load(), or for its state if the token is current.
FinishOutcome finish(Rows& rows, Execution execution, const Report& report);

// Their effect on the execution itself, and nothing else.
FinishOutcome apply_report(Execution& execution, const Report& report, Time now);
ExtendOutcome apply_extension(Execution& execution, const Extension& extension, Time now);

}  // namespace hapax::rules
