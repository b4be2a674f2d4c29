// What an activity's row in the store says: its definition, how far its schedule has come, and what was decided but may
// not be done.
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
  SchedulePosition position;  // of an activity that events start: only whether it is paused
  std::string open_run;       // the workflow that was still open when its schedule was last looked at; for its overlap
  // Decided by whoever moved the position, and to be carried out by him, or after his lease by whoever comes.
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
