// Starts runs and keeps the run ledger, for schedules, events and manual triggers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/known_settings.h"
#include "engine/lane.h"
#include "store/store.h"

namespace hapax {

class RunStarter {
 public:
  RunStarter(Engine& engine, Store& store, const KnownSettings& settings, LaneLimits limits);

  // In batches of any size. The results are in the order of the requests.
  void start(const std::string& name_space, std::vector<SubmitRequest> requests,
             Reply<std::vector<SubmitResult>> reply);

  // Answers with what the ledger says: see ActivityRows::record().
  void record(std::vector<ActivityRun> runs, Reply<std::vector<ActivityRun>> reply);

  bool is_open(const std::string& name_space, const std::string& workflow_id);
  Time now() { return store_.now(); }
  ActivityRows& rows() { return store_.activities(); }
  void stop() { ledger_.stop(); }
  void expire() { ledger_.expire(); }

 private:
  void start_from(std::shared_ptr<struct Starting> starting);

  Engine& engine_;
  Store& store_;
  const KnownSettings& settings_;
  Lane<ActivityRun, ActivityRun> ledger_;
};

}  // namespace hapax
