// Which firings of a schedule a backfill starts, and what it answers for the others.
#pragma once

#include <vector>

#include "core/cron.h"
#include "core/time_zone.h"
#include "engine/activities.h"
#include "engine/activity_record.h"

namespace hapax {

struct BackfilledFiring {
  ActivityRun run;
  bool start = false;  // otherwise it is a duplicate of `run`
  bool again = false;  // a run of its id has closed, and it is started anyway
};

// The firings in the order of time. `ledger`: the rows of the ledger from wanted.from to wanted.to, of any cause.
// Throws InvalidField for more than Activities::kMaxBackfill.
std::vector<BackfilledFiring> plan_backfill(const ActivityRecord& record, const Cron& cron, const TimeZone& zone,
                                            const Backfill& wanted, std::vector<ActivityRun> ledger);

}  // namespace hapax
