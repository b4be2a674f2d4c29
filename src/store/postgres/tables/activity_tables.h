// The rows of activities and of the run ledger: one round trip for each batch, unless others are at the same rows.
#pragma once

#include <functional>

#include "store/activity_rows.h"
#include "store/postgres/connection/runner.h"

namespace hapax::postgres {

class ActivityTables final : public ActivityRows {
 public:
  // Calls `on_change` after an activity was changed or removed. The runner must outlive it.
  ActivityTables(Runner& runner, std::function<void()> on_change) : runner_(runner), on_change_(std::move(on_change)) {}

  std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override;
  std::vector<ActivityRow> list(const ActivityFilter& filter) override;
  std::vector<bool> change(std::span<const ActivityChange> changes) override;
  DueActivities due(std::int32_t limit) override;
  std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override;
  std::vector<ActivityRun> runs(const RunFilter& filter) override;
  std::int64_t purge_runs(Time before, std::int32_t limit) override;

 private:
  Runner& runner_;
  const std::function<void()> on_change_;
};

// The SQL of due(), with the time and the limit as its parameters, and of runs(): for tests of the plan.
const Statement& due_activities_statement();
const Statement& runs_statement();

}  // namespace hapax::postgres
