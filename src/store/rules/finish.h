// What a worker says of the attempt that it was given: its outcome, or that it is still at it.
#pragma once

#include "store/rules/rows.h"

namespace hapax::rules {

FinishOutcome finish(Rows& rows, const Report& report);
ExtendOutcome extend(Rows& rows, const Extension& extension);

// The same of an execution from load(), or of its state if the token is current.
FinishOutcome finish(Rows& rows, Execution execution, const Report& report);

// What they do to the execution itself, and nothing else.
FinishOutcome apply_report(Execution& execution, const Report& report, Time now);
ExtendOutcome apply_extension(Execution& execution, const Extension& extension, Time now);

}  // namespace hapax::rules
