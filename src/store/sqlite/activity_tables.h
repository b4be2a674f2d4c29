// The rows of activities and of the run ledger. Over one connection, within a transaction that the caller began;
// readers call what changes nothing.
#pragma once

#include "store/activity_rows.h"
#include "store/sqlite/connection.h"

namespace hapax::sqlite {

class ActivityTables {
 public:
  explicit ActivityTables(Connection& connection);

  std::optional<ActivityRow> find(const std::string& name_space, const std::string& id);
  std::vector<ActivityRow> list(const ActivityFilter& filter);
  bool change(const ActivityChange& change);
  DueActivities due(std::int32_t limit, Time now);

  ActivityRun record(const ActivityRun& run, Time now);
  std::vector<ActivityRun> runs(const RunFilter& filter);
  std::int64_t purge_runs(Time before, std::int32_t limit);

 private:
  Connection& connection_;
  Statement find_, put_, erase_, due_, next_due_;
  Statement find_run_, put_run_, runs_, purge_runs_;
};

}  // namespace hapax::sqlite
