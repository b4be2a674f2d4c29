// What a handle has of the store under one identity: the connections, and everything that is remembered of the data.
// When the identity is another, all of it is replaced at once, so nothing can be forgotten to be forgotten.
#pragma once

#include <memory>
#include <utility>

#include "store/postgres/tables/activity_tables.h"
#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

struct Opened {
  Opened(ConnectionOptions options, std::size_t connections, const Clock* clock, std::function<void()> on_replaced,
         std::function<void()> activities_changed, fast::Switches fast)
      : runner(std::move(options), connections, clock, std::move(on_replaced), fast),
        submit(runner),
        claim(runner),
        sweep(runner),
        activities(runner, std::move(activities_changed)) {}

  Runner runner;
  Submit submit;
  Claim claim;
  Sweep sweep;
  ActivityTables activities;
};

// One call of a verb: what it began with stays until its end, and it ends by its deadline.
class Call {
 public:
  Call(std::shared_ptr<Opened> opened, Duration timeout) : opened_(std::move(opened)), deadline_(timeout) {}

  Opened* operator->() const { return opened_.get(); }
  Runner& runner() const { return opened_->runner; }

 private:
  const std::shared_ptr<Opened> opened_;
  const CallDeadline deadline_;
};

// The activities of whatever is opened at the moment.
class CurrentActivities final : public ActivityRows {
 public:
  explicit CurrentActivities(std::function<Call()> call) : call_(std::move(call)) {}

  std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override {
    return call_()->activities.find(name_space, id);
  }
  std::vector<ActivityRow> list(const ActivityFilter& filter) override { return call_()->activities.list(filter); }
  std::vector<bool> change(std::span<const ActivityChange> changes) override {
    return call_()->activities.change(changes);
  }
  DueActivities due(std::int32_t limit) override { return call_()->activities.due(limit); }
  std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override {
    return call_()->activities.record(runs);
  }
  std::vector<ActivityRun> runs(const RunFilter& filter) override { return call_()->activities.runs(filter); }
  std::int64_t purge_runs(Time before, std::int32_t limit) override {
    return call_()->activities.purge_runs(before, limit);
  }

 private:
  const std::function<Call()> call_;
};

}  // namespace hapax::postgres
