// Delivers events: finds the matching activities and starts one run for each.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/activities.h"
#include "engine/activity_record.h"
#include "engine/run_starter.h"

namespace hapax {

class Delivery {
 public:
  explicit Delivery(RunStarter& starter) : starter_(starter) {}

  // Every event has its id. Throws InvalidField for one that is too long to be part of a workflow id: then nothing was
  // started.
  void deliver(const std::string& name_space, std::vector<CloudEvent> events, Reply<std::vector<EventReceipt>> reply);

  // The activities of the namespace have changed.
  void forget(const std::string& name_space);

 private:
  using Listeners = std::vector<ActivityRecord>;
  struct Known {
    std::shared_ptr<const Listeners> listeners;
    std::chrono::steady_clock::time_point at;
  };

  struct Asked;
  struct Work;

  static void judge(Asked& asked, const SubmitResult& result);
  static void tell(EventReceipt& receipt, const Asked& asked, const ActivityRun& row);
  void write_down(const std::shared_ptr<Work>& work);
  std::shared_ptr<const Listeners> listeners(const std::string& name_space);

  RunStarter& starter_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by namespace
};

}  // namespace hapax
