// What the memory store keeps of activities.
//
// Always true: every activity with a next_due is in due_, every run of the ledger in by_time_ and by_age_.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "store/activity_rows.h"

namespace hapax::memory {

class ActivityTables final : public ActivityRows {
 public:
  // The clock must outlive it.
  explicit ActivityTables(const Clock& clock) : clock_(clock) {}

  std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override;
  std::vector<ActivityRow> list(const ActivityFilter& filter) override;
  std::vector<bool> change(std::span<const ActivityChange> changes) override;
  DueActivities due(std::int32_t limit) override;
  std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override;
  std::vector<ActivityRun> runs(const RunFilter& filter) override;
  std::int64_t purge_runs(Time before, std::int32_t limit) override;

 private:
  using Key = std::pair<std::string, std::string>;                   // namespace, id
  using Firing = std::tuple<std::string, std::string, std::string>;  // namespace, activity, occurrence

  bool change_one(const ActivityChange& change);
  ActivityRun record_one(const ActivityRun& run);
  void insert_run(const Firing& firing, const ActivityRun& run);
  void erase_run(const Firing& firing);

  const Clock& clock_;
  std::mutex mutex_;
  std::map<Key, ActivityRow> activities_;
  std::set<std::pair<Time, Key>> due_;
  std::map<Firing, ActivityRun> ledger_;
  std::set<std::tuple<Key, Time, std::string>> by_time_;  // activity, at, occurrence
  std::set<std::pair<Time, Firing>> by_age_;              // recorded_at
};

}  // namespace hapax::memory
