// The engine over a store: group commit, wake-ups, sweeping and cleanup.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/settings.h"
#include "engine/engine.h"
#include "store/store.h"

namespace hapax {

struct EngineOptions {
  Strategy undeclared = Strategy::always_unique;  // identity of an undeclared type
  std::optional<Duration> idempotency_ttl;        // where neither request nor type nor queue says
  Duration task_retention = std::chrono::days(7);
  Duration workflow_retention = std::chrono::days(30);
  Duration store_timeout{10'000};  // calls that wait for the store are answered by then
  // Submissions that more than that much commits ahead of are refused at once: for servers, whose callers are many.
  std::optional<Duration> submit_backlog = std::nullopt;
  Duration cleanup_interval = std::chrono::hours(1);
  Duration request_ttl = std::chrono::days(7);                    // of the request keys of control operations
  Duration request_cleanup_interval = std::chrono::seconds(300);  // operations trigger it at most this often
  std::map<std::string, QueueSettings> queues;  // of the configuration file: they win, in every namespace
  std::map<std::string, TypeSettings> types;
  std::map<std::string, ActivitySettings> activities;  // in the default namespace
  std::function<bool()> fires = {};                    // whether schedules fire from here now; absent: always
};

class LocalEngine : public Engine {
 public:
  // Ends all waits with empty answers, finishes what was accepted, and stops the threads. Later calls are refused with
  // Failure::stopped. A store that has not answered everything within the grace is interrupted, so that this ends. The
  // destructor does it too.
  virtual void stop(Duration grace = std::chrono::seconds(5)) = 0;

  // For tests: the store's clock was moved. Everything that is due by now happens before this returns, except for what
  // workers have to claim.
  virtual void clock_moved() = 0;

  // Submits through `store_it` instead of the group commit: into a transaction that the caller has begun and will
  // commit. No waiting claim is woken; they learn of it like of another process's change.
  using StoreIt = std::function<SubmitOutcome(const Submission&, const QueuePolicies&)>;
  virtual SubmitResult submit_through(const std::string& name_space, SubmitRequest request,
                                      const StoreIt& store_it) = 0;
};

std::unique_ptr<LocalEngine> start_engine(std::shared_ptr<Store> store, EngineOptions options);

}  // namespace hapax
