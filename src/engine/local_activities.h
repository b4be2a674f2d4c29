// Activities over a store: define, pause, trigger, backfill, read. Schedules fire by themselves (fire.h); events are
// delivered in deliver.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/activities.h"
#include "engine/activity_record.h"
#include "engine/deliver.h"
#include "engine/fire.h"
#include "engine/run_starter.h"
#include "engine/task_list.h"

namespace hapax {

class LocalActivities final : public Activities {
 public:
  // `declare_queue` makes the queue known to all who share the store, in that namespace.
  using DeclareQueue = std::function<void(const std::string& name_space, const std::string& queue)>;
  LocalActivities(Engine& engine, Store& store, const KnownSettings& settings, const EngineOptions& options,
                  DeclareQueue declare_queue);

  // Loads the configuration file's activities, and starts firing.
  void start();
  void stop();
  // The settings of a queue have changed: there may be task lists in another namespace.
  void settings_changed();
  // Answers what has waited too long for the store.
  void expire() { starter_.expire(); }
  // Fires what is due now.
  void clock_moved() { schedules_.look(); }
  // The store was replaced: it may not have the file's activities, and others may be due.
  void store_replaced();
  std::int64_t failures() const { return schedules_.failures(); }

  std::optional<ActivityView> find(const std::string& name_space, const std::string& id) override;
  ActivitiesPage list(const std::string& name_space, const std::string& after, std::int32_t limit) override;
  ActivityView put(const std::string& name_space, const std::string& id, const ActivitySettings& settings) override;
  bool remove(const std::string& name_space, const std::string& id) override;
  std::optional<ActivityView> set_paused(const std::string& name_space, const std::string& id, bool paused) override;
  std::optional<RunsPage> runs(const std::string& name_space, const std::string& id, const std::string& cursor,
                               std::int32_t limit) override;
  void trigger(const std::string& name_space, const std::string& id, const std::optional<std::string>& request_key,
               Reply<std::optional<Triggered>> reply) override;
  void backfill(const std::string& name_space, const std::string& id, const Backfill& wanted,
                Reply<std::optional<std::vector<ActivityRun>>> reply) override;
  void deliver(const std::string& name_space, std::vector<CloudEvent> events,
               Reply<std::vector<EventReceipt>> reply) override;

 private:
  // Reads the record, lets `edit` change it and writes it back; repeats if another writer was faster. `edit` says
  // whether to continue; a record of revision 0 is new. Returns the resulting record.
  using Edit = std::function<bool(ActivityRecord&)>;
  ActivityRecord change(const std::string& name_space, const std::string& id, const Edit& edit);
  std::optional<ActivityRecord> load(const std::string& name_space, const std::string& id);
  ActivityRecord define(const std::string& name_space, const std::string& id, const ActivitySettings& settings);
  void take_over_file();

  std::vector<ActivityRun> runs_between(const std::string& name_space, const std::string& id, Time from, Time to);
  ActivityView view(const ActivityRecord& record, std::int32_t shown_runs = 5) const;
  bool is_from_file(const std::string& name_space, const std::string& id) const;
  void refuse_if_from_file(const std::string& name_space, const std::string& id) const;
  void start_and_record(const std::string& name_space, std::vector<SubmitRequest> requests,
                        std::vector<ActivityRun> runs, Reply<std::vector<ActivityRun>> reply);

  Store& store_;
  const EngineOptions& options_;
  const DeclareQueue declare_queue_;
  IdGenerator ids_;
  RunStarter starter_;
  Timer timer_;
  Schedules schedules_;
  Delivery delivery_;
  TaskLists task_lists_;
};

}  // namespace hapax
