// An activity's row: its definition, the position of its schedule, and the plan that is being carried out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/activity.h"
#include "core/schedule.h"
#include "store/activity_rows.h"

namespace hapax {

struct ActivityRecord {
  std::string name_space;
  std::string id;
  ActivitySettings settings;
  Time created_at, updated_at;
  SchedulePosition position;  // for an activity with an event trigger: only whether it is paused
  std::string open_run;       // the workflow that was still open at the last check of its schedule; for its overlap
  // The decision of the server that moved the position. That server carries it out, or after its lease any other.
  std::vector<PlannedRun> pending;
  std::optional<Time> next_due;
  std::int64_t revision = 0;

  // Throws Failure::corrupt.
  static ActivityRecord parse(const ActivityRow& row);
  ActivityRow row() const;

  // Whether its schedule fires.
  bool is_scheduled() const { return settings.cron() && settings.enabled && !position.paused(); }
};

// The row of the run ledger for what was planned.
ActivityRun ledger_row(const ActivityRecord& record, const PlannedRun& planned);

}  // namespace hapax
