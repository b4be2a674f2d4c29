// The reports of a worker: many go to the engine in one call, and again until it has answered.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/lane.h"

namespace hapax::detail {

// Safe to use from any thread.
class ReportLane {
 public:
  // The engine must outlive it. After a lease's length a report is useless, so it is given up.
  ReportLane(Engine& engine, std::string name_space, Duration lease);
  ~ReportLane() { stop(); }

  // Answers on the lane's thread: with the outcome, or with the failure if the engine could not be reached.
  void put(Report report, Reply<std::vector<FinishOutcome>> done);

  // Sends what is there, without pauses, then ends the thread. Idempotent.
  void stop();

 private:
  std::vector<FinishOutcome> finish(std::span<const Report> reports);
  std::vector<FinishOutcome> finish_one_by_one(std::span<const Report> reports, const std::string& why);

  Engine& engine_;
  const std::string name_space_;
  const Duration lease_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  Lane<Report, FinishOutcome> lane_;  // ends first
};

}  // namespace hapax::detail
