#include "store/memory/activity_tables.h"

#include "store/rules/activity_rules.h"

namespace hapax::memory {

std::optional<ActivityRow> ActivityTables::find(const std::string& name_space, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = activities_.find({name_space, id});
  return found == activities_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ActivityRow> ActivityTables::list(const ActivityFilter& filter) {
  check_filter(filter);
  const std::lock_guard lock(mutex_);
  std::vector<ActivityRow> found;
  auto next = filter.name_space ? activities_.upper_bound({*filter.name_space, filter.after}) : activities_.begin();
  for (; next != activities_.end() && std::ssize(found) < filter.limit; ++next) {
    const ActivityRow& row = next->second;
    if (filter.name_space && row.name_space != *filter.name_space) break;
    if (!filter.by_event || row.by_event == *filter.by_event) found.push_back(row);
  }
  return found;
}

std::vector<bool> ActivityTables::change(std::span<const ActivityChange> changes) {
  const std::lock_guard lock(mutex_);
  std::vector<bool> did;
  for (const ActivityChange& change : changes) did.push_back(change_one(change));
  return did;
}

bool ActivityTables::change_one(const ActivityChange& change) {
  const Key key(change.row.name_space, change.row.id);
  const auto stored = activities_.find(key);
  const ActivityVerdict verdict = judge(change, stored == activities_.end() ? nullptr : &stored->second);
  if (verdict != ActivityVerdict::apply) return verdict == ActivityVerdict::done;
  if (stored != activities_.end()) {
    if (stored->second.next_due) due_.erase({*stored->second.next_due, key});
    activities_.erase(stored);
  }
  if (change.remove) return true;
  ActivityRow& row = activities_.emplace(key, change.row).first->second;
  row.revision = next_revision(change);
  if (row.next_due) due_.emplace(*row.next_due, key);
  return true;
}

DueActivities ActivityTables::due(std::int32_t limit) {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  DueActivities due;
  for (const auto& [next_due, key] : due_) {
    if (next_due > now || std::ssize(due.rows) >= limit) {
      due.next_due = next_due;
      break;
    }
    due.rows.push_back(activities_.at(key));
  }
  return due;
}

std::vector<ActivityRun> ActivityTables::record(std::span<const ActivityRun> runs) {
  const std::lock_guard lock(mutex_);
  std::vector<ActivityRun> stored;
  for (const ActivityRun& run : runs) stored.push_back(record_one(run));
  return stored;
}

ActivityRun ActivityTables::record_one(const ActivityRun& run) {
  const Firing firing(run.name_space, run.activity, run.occurrence);
  const auto stored = ledger_.find(firing);
  if (stored != ledger_.end()) {
    if (!gives_way(stored->second.disposition, run.disposition)) return stored->second;
    erase_run(firing);
  }
  ActivityRun recorded = run;
  recorded.recorded_at = clock_.now();
  insert_run(firing, recorded);
  return recorded;
}

void ActivityTables::insert_run(const Firing& firing, const ActivityRun& run) {
  ledger_.emplace(firing, run);
  by_time_.emplace(Key(run.name_space, run.activity), run.at, run.occurrence);
  by_age_.emplace(run.recorded_at, firing);
}

void ActivityTables::erase_run(const Firing& firing) {
  const auto found = ledger_.find(firing);
  const ActivityRun& run = found->second;
  by_time_.erase({Key(run.name_space, run.activity), run.at, run.occurrence});
  by_age_.erase({run.recorded_at, firing});
  ledger_.erase(found);
}

std::vector<ActivityRun> ActivityTables::runs(const RunFilter& filter) {
  const std::lock_guard lock(mutex_);
  const Key activity(filter.name_space, filter.activity);
  const Time end = filter.after ? filter.after->at : Time::max();
  std::vector<ActivityRun> found;
  auto place = by_time_.lower_bound({activity, end, filter.after ? filter.after->occurrence : std::string()});
  while (place != by_time_.begin() && std::ssize(found) < filter.limit) {
    const auto& [owner, at, occurrence] = *--place;
    if (owner != activity) break;
    found.push_back(ledger_.at({filter.name_space, filter.activity, occurrence}));
  }
  return found;
}

std::int64_t ActivityTables::purge_runs(Time before, std::int32_t limit) {
  const std::lock_guard lock(mutex_);
  std::int64_t purged = 0;
  while (purged < limit && !by_age_.empty() && by_age_.begin()->first < before) {
    const Firing firing = by_age_.begin()->second;
    erase_run(firing);
    ++purged;
  }
  return purged;
}

}  // namespace hapax::memory
