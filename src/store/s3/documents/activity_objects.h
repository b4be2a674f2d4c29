// What the S3 store keeps of activities: one object for each activity, one for each firing in the run ledger, each
// changed by itself.
//
//   activities/{namespace}/{id}.json
//   firings/{namespace}/{activity}/{digest of the occurrence}.json
// and hints to them: scheduled/ by next_due, firing-times/ newest first, firing-ages/ by when they were recorded.
#pragma once

#include <functional>
#include <memory>

#include "store/activity_rows.h"
#include "store/s3/transaction/transaction.h"

namespace hapax::s3 {

class ActivityObjects final : public ActivityRows {
 public:
  // `changed` is called after each change.
  ActivityObjects(std::shared_ptr<ObjectStore> objects, Duration timeout, std::function<void()> changed)
      : objects_(std::move(objects)), timeout_(timeout), changed_(std::move(changed)) {}

  std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override;
  std::vector<ActivityRow> list(const ActivityFilter& filter) override;
  std::vector<bool> change(std::span<const ActivityChange> changes) override;
  DueActivities due(std::int32_t limit) override;
  std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override;
  std::vector<ActivityRun> runs(const RunFilter& filter) override;
  std::int64_t purge_runs(Time before, std::int32_t limit) override;

 private:
  const std::shared_ptr<ObjectStore> objects_;
  const Duration timeout_;  // of every call
  const std::function<void()> changed_;
};

}  // namespace hapax::s3
