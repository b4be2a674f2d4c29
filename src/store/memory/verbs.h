// The verbs of the memory store, each on one item. The caller holds the store's lock.
#pragma once

#include "store/memory/tables.h"

namespace hapax::memory {

SubmitOutcome submit(Tables& tables, const Submission& submission, Time now);
ClaimOutcome claim(Tables& tables, const ClaimRequest& request, Time now);
ExtendOutcome extend(Tables& tables, const Extension& extension, Time now);
FinishOutcome finish(Tables& tables, const Report& report, Time now);
ControlOutcome control(Tables& tables, const ControlRequest& request, Time now);
SweepOutcome sweep(Tables& tables, std::int32_t limit, Time now);
PurgeOutcome purge(Tables& tables, std::int32_t limit, Time now);

}  // namespace hapax::memory
