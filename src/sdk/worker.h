// The worker: claims tasks, runs their handlers on threads, keeps their leases alive, and reports what became of them.
//
//   claim ─▶ queue ─▶ N handler threads ─▶ report lane ─▶ finish
//                           ▲
//                    heartbeat thread
//
// Claims ask for as many as the threads can start at once; for handlers that take next to no time, for some 20 ms of work
// ahead, so that neither the claims nor the reports are made one by one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/lane.h"
#include "sdk/app_state.h"

namespace hapax::detail {

// An attempt that this worker has a lease for.
class RunningTask {
 public:
  explicit RunningTask(Execution claimed)
      : execution(std::move(claimed)), token{execution.id, execution.attempt, *execution.lease_secret} {}

  TaskContext context() const { return TaskContext(*this); }

  const Execution execution;
  const LeaseToken token;
  std::atomic<bool> cancel_requested = false;
};

class Worker {
 public:
  Worker(AppState& app, const WorkOptions& options);
  ~Worker();

  // Until the app is stopped, a signal comes, or there was nothing to do for as long as the options say.
  void run();

 private:
  using Steady = std::chrono::steady_clock;

  void handle_tasks();
  Report run_handler(RunningTask& task);
  void report(const std::shared_ptr<RunningTask>& task, Report report, Steady::duration took);
  std::vector<FinishOutcome> finish(std::span<const Report> reports);
  std::vector<FinishOutcome> finish_one_by_one(std::span<const Report> reports, const std::string& why);

  void claim_more();
  void claimed(Answer<std::vector<Execution>> answer);
  std::int32_t places() const;

  void keep_leases();
  bool should_stop() const;
  void stop_threads();

  AppState& app_;
  const WorkOptions options_;
  const std::map<std::string, DeclaredTask> tasks_;
  const std::vector<std::string> queues_;
  const std::string name_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;  // a task to run, or the end
  std::condition_variable changed_;  // the run loop has something to do
  std::deque<std::shared_ptr<RunningTask>> queued_;
  std::map<LeaseToken, std::shared_ptr<RunningTask>> held_;  // queued, running or not yet reported
  std::shared_ptr<Waiting> claim_;                           // under way
  bool claiming_ = false;
  bool draining_ = false;
  bool ended_ = false;
  std::exception_ptr hopeless_;  // why claiming will never work: a wrong token, a damaged store
  double seconds_each_ = 1;  // a handler takes, on average of late
  Steady::time_point last_busy_ = Steady::now();
  Steady::time_point claim_again_at_ = {};  // not before: the engine could not be reached
  std::vector<std::thread> threads_;
  std::thread heartbeat_;
  std::unique_ptr<Lane<Report, FinishOutcome>> reports_;
};

}  // namespace hapax::detail
