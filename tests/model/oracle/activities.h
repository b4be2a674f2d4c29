// Spec 6: what the oracle keeps of activities, which have nothing to do with the rest of its state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/activity_rows.h"

namespace hapax::oracle {

struct Activities {
  Time now;
  std::vector<ActivityRow> rows;
  std::vector<ActivityRun> ledger;

  ActivityRow* find(const std::string& name_space, const std::string& id);
  bool change(const ActivityChange& change);
  ActivityRun record(const ActivityRun& run);
  DueActivities due(std::int32_t limit);
  std::vector<ActivityRow> list(const ActivityFilter& filter);
  std::vector<ActivityRun> runs(const RunFilter& filter);
  std::int64_t purge_runs(Time before, std::int32_t limit);
};

}  // namespace hapax::oracle
