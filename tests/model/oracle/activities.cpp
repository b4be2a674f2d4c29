#include "model/oracle/activities.h"

#include <algorithm>
#include <tuple>

namespace hapax::oracle {

ActivityRow* Activities::find(const std::string& name_space, const std::string& id) {
  for (ActivityRow& row : rows) {
    if (row.name_space == name_space && row.id == id) return &row;
  }
  return nullptr;
}

// Only what replaces the current revision is done. What was done already counts as done: its answer was lost.
bool Activities::change(const ActivityChange& change) {
  ActivityRow* stored = find(change.row.name_space, change.row.id);
  const bool replaces_current = change.row.revision == (stored ? stored->revision : 0);
  if (change.remove) {
    if (stored && !replaces_current) return false;
    std::erase_if(rows, [&](const ActivityRow& row) { return &row == stored; });
    return true;
  }
  ActivityRow wanted = change.row;
  wanted.revision = change.row.revision == 0 ? change.first_revision : change.row.revision + 1;
  if (!replaces_current) return stored && *stored == wanted;
  if (stored) {
    *stored = wanted;
  } else {
    rows.push_back(wanted);
  }
  return true;
}

// The first row of a firing holds, unless it was made up for.
ActivityRun Activities::record(const ActivityRun& run) {
  ActivityRun recorded = run;
  recorded.recorded_at = now;
  for (ActivityRun& stored : ledger) {
    if (stored.name_space != run.name_space || stored.activity != run.activity) continue;
    if (stored.occurrence != run.occurrence) continue;
    const bool did_not_run =
        stored.disposition == Disposition::skipped || stored.disposition == Disposition::compressed;
    if (did_not_run && run.disposition == Disposition::caught_up) stored = recorded;
    return stored;
  }
  ledger.push_back(recorded);
  return recorded;
}

DueActivities Activities::due(std::int32_t limit) {
  std::vector<ActivityRow> scheduled;
  for (const ActivityRow& row : rows) {
    if (row.next_due) scheduled.push_back(row);
  }
  std::sort(scheduled.begin(), scheduled.end(), [](const ActivityRow& a, const ActivityRow& b) {
    return std::tie(*a.next_due, a.name_space, a.id) < std::tie(*b.next_due, b.name_space, b.id);
  });
  DueActivities due;
  for (const ActivityRow& row : scheduled) {
    if (*row.next_due > now || std::ssize(due.rows) == limit) {
      due.next_due = row.next_due;
      break;
    }
    due.rows.push_back(row);
  }
  return due;
}

std::vector<ActivityRow> Activities::list(const ActivityFilter& filter) {
  std::vector<ActivityRow> found;
  for (const ActivityRow& row : rows) {
    if (filter.name_space && row.name_space != *filter.name_space) continue;
    if (filter.by_event && row.by_event != *filter.by_event) continue;
    if (row.id > filter.after) found.push_back(row);
  }
  std::sort(found.begin(), found.end(), [](const ActivityRow& a, const ActivityRow& b) {
    return std::tie(a.name_space, a.id) < std::tie(b.name_space, b.id);
  });
  if (std::ssize(found) > filter.limit) found.resize(static_cast<std::size_t>(filter.limit));
  return found;
}

// Newest first: by time, then by occurrence.
std::vector<ActivityRun> Activities::runs(const RunFilter& filter) {
  std::vector<ActivityRun> found;
  for (const ActivityRun& run : ledger) {
    if (run.name_space != filter.name_space || run.activity != filter.activity) continue;
    const bool is_after =
        !filter.after || std::tie(run.at, run.occurrence) < std::tie(filter.after->at, filter.after->occurrence);
    if (is_after) found.push_back(run);
  }
  std::sort(found.begin(), found.end(), [](const ActivityRun& a, const ActivityRun& b) {
    return std::tie(a.at, a.occurrence) > std::tie(b.at, b.occurrence);
  });
  if (std::ssize(found) > filter.limit) found.resize(static_cast<std::size_t>(filter.limit));
  return found;
}

std::int64_t Activities::purge_runs(Time before, std::int32_t limit) {
  std::sort(ledger.begin(), ledger.end(), [](const ActivityRun& a, const ActivityRun& b) {
    return std::tie(a.recorded_at, a.name_space, a.activity, a.occurrence) <
           std::tie(b.recorded_at, b.name_space, b.activity, b.occurrence);
  });
  std::int64_t purged = 0;
  while (purged < limit && !ledger.empty() && ledger.front().recorded_at < before) {
    ledger.erase(ledger.begin());
    ++purged;
  }
  return purged;
}

}  // namespace hapax::oracle
