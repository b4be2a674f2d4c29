// The engine over a store, behind start_engine(). Its verbs are in the sources local_*.cpp, by groups as in engine.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/claim.h"
#include "engine/known_settings.h"
#include "engine/lanes.h"
#include "engine/local_activities.h"
#include "engine/local_engine.h"
#include "engine/readiness.h"
#include "engine/sweep.h"
#include "engine/timer.h"
#include "engine/unclaimed_watch.h"
#include "engine/update.h"
#include "engine/wait_closed.h"
#include "engine/worker_book.h"

namespace hapax {

class StoreEngine final : public LocalEngine {
 public:
  StoreEngine(std::shared_ptr<Store> store, EngineOptions options);
  ~StoreEngine() override { StoreEngine::stop(); }

  void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
              Reply<std::vector<SubmitResult>> reply) override;
  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) override;
  void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) override;
  void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) override;
  void control(ControlRequest request, Reply<ControlOutcome> reply) override;
  void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) override;
  std::optional<Execution> begin_within_turn(const Execution& run, const TurnWorker& worker,
                                             TurnRequest::Command& command) override;
  StepsWithinTurns steps_within_turns(const std::string& name_space, const std::vector<std::string>& queues,
                                      const std::vector<std::string>& types) override;
  std::shared_ptr<Waiting> update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply) override;
  std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                       Reply<std::optional<Execution>> reply) override;
  std::shared_ptr<Waiting> wait_workflow(const std::string& name_space, const std::string& workflow_id, Duration wait,
                                         Reply<std::optional<Execution>> reply) override;

  std::optional<Execution> find_workflow(const std::string& name_space, const std::string& workflow_id) override;
  std::vector<Event> history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                             std::int32_t limit) override;
  std::optional<Values> values(const std::string& name_space, const std::string& workflow_id) override;
  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override;
  std::vector<WorkerInfo> workers(const std::string& name_space) override;
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override;
  std::optional<Why> why_workflow(const std::string& name_space, const std::string& workflow_id) override;
  Page list(const ListFilter& filter) override;
  std::optional<FoundIdentity> find_identity(const std::string& name_space, const std::string& type,
                                             const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                             const std::string& key) override;
  bool release_identity(const std::string& name_space, const IdentityHash& hash) override;

  QueueView queue(const std::string& name_space, const std::string& name) override;
  std::vector<QueueView> queues(const std::string& name_space) override;
  QueueView put_queue(const std::string& name_space, const std::string& name, const QueueSettings& settings) override;
  QueueView set_paused(const std::string& name_space, const std::string& name, bool paused) override;
  TypeView type(const std::string& name_space, const std::string& name) override;
  std::vector<TypeView> types(const std::string& name_space) override;
  TypeView put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) override;
  TypeView declare_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) override;
  TypeView patch_type(const std::string& name_space, const std::string& name, const Json& patch) override;

  Activities& activities() override { return activities_; }
  void check_ready() override;
  EngineCounters counters() override;
  std::vector<QueueCount> queue_counts() override { return store_->count(std::nullopt); }
  void stop(Duration grace = std::chrono::seconds(5)) override;
  void clock_moved() override;
  SubmitResult submit_through(const std::string& name_space, SubmitRequest request, const StoreIt& store_it) override;

 private:
  using Announcements = ClaimDesk::Counts;

  std::vector<SubmitOutcome> commit_submissions(std::span<const Submission> submissions);
  std::vector<FinishOutcome> commit_reports(std::span<const Report> reports);
  void put_control(ControlRequest request, Reply<ControlOutcome> reply);
  std::vector<ControlOutcome> commit_controls(std::span<const ControlRequest> requests);
  std::vector<TurnOutcome> commit_resolved(std::span<const Turn> turns);
  void count_finished(const FinishOutcome& outcome, Announcements& ready, Announcements& left);
  void announce_finished(Announcements ready, const Announcements& left);
  void spread(const Effects& effects);
  void handed_out(const std::vector<Claimed>& claimed);
  void give_back(const std::vector<Claimed>& claimed);
  void announce(const Announcements& announcements);
  TypeView change_type(const std::string& name_space, const std::string& name,
                       const std::function<void(TypeDocument&)>& change);
  void reload_settings();
  void declare_queue(const std::string& name_space, const std::string& name);
  void changed_elsewhere();
  void refresh();
  void begin_anew();
  void expire();

  const EngineOptions options_;
  const LaneLimits limits_{.timeout = options_.store_timeout};
  const std::shared_ptr<Store> store_;
  IdGenerator ids_;
  KnownSettings settings_;
  std::mutex reload_mutex_;

  std::atomic<std::int64_t> submitted_ = 0, deduplicated_ = 0, conflicts_ = 0, claimed_ = 0, completed_ = 0,
                            failed_attempts_ = 0, leases_lost_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> refresh_pending_ = false;
  std::atomic<Timer::Instant> last_refresh_ = Timer::Instant();

  std::mutex put_mutex_;  // settings are read, changed and written back
  Readiness readiness_{*store_};

  Timer timer_;        // ends of waits
  Timer reader_;       // reads for those who wait
  Timer sweep_timer_;  // sweeps and cleanups, which may take a while
  Sweeper sweeper_;
  ResultDesk results_;
  UpdateDesk updates_;
  WorkerBook workers_{*store_, sweep_timer_};
  UnclaimedWatch unclaimed_{*store_, sweep_timer_};
  ClaimDesk claims_;
  Lanes lanes_;
  LocalActivities activities_;
};

}  // namespace hapax
