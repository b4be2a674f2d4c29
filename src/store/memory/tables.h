// What the memory store keeps, and the indexes that make claiming and sweeping independent of how much is closed.
//
// Always true: every execution is in exactly the indexes its status asks for; a ledger entry has either an owner among
// the executions or a tombstone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/ledger.h"
#include "core/policy.h"
#include "core/rate.h"
#include "store/rules/rows.h"
#include "store/store.h"

namespace hapax::memory {

struct QueueName {
  std::string name_space, queue;
  Kind kind = Kind::task;  // turns of workflows wait apart from tasks

  auto operator<=>(const QueueName&) const = default;
};
using TimeOrder = std::set<std::pair<Time, ExecutionId>>;
using Levels = std::map<std::int32_t, TimeOrder, std::greater<>>;  // by priority, highest first; each by run_at

// What is open in one queue.
struct OpenTasks {
  std::map<std::string, Levels> pending;  // by type; those that are there have some
  std::int64_t running = 0;
  std::map<std::string, std::int64_t> running_by_key;  // by concurrency key

  bool empty() const { return pending.empty() && running == 0; }
};

// The answer of a control operation, kept under its request key.
struct StoredRequest {
  PastRequest past;
  Time expires_at;
};

class Tables {
 public:
  using Closed = std::map<std::tuple<std::string, std::string, Kind>, TimeOrder>;  // by namespace, queue, kind

  const std::set<ExecutionId>& ids_in(const std::string& name_space, Kind kind) const;
  const std::multimap<std::string, ExecutionId>& runs() const { return runs_; }    // of workflows, by workflow id
  const std::multimap<ExecutionId, ExecutionId>& steps() const { return steps_; }  // by run
  const std::map<QueueName, OpenTasks>& open() const { return open_; }
  const Closed& closed() const { return closed_; }  // each by finished_at
  const TimeOrder& due() const { return due_; }     // by due_at
  // What runs under a claim that may be said again.
  std::set<ExecutionId> claimed_under(const LeaseSecret& secret) const;

  const std::set<std::pair<std::string, std::string>>& queues() const {
    return queues_;
  }  // namespace, queue; ever used

  const Execution* find(const ExecutionId& id) const;
  // None where it was purged, although its id may have come again without its key.
  const Execution* owner_of(const LedgerEntry& entry) const { return entry.tombstone ? nullptr : find(entry.owner); }
  const Execution* find(const std::string& name_space, const ExecutionId& id) const;

  void insert(Execution execution);

  // Applies a transition to a stored execution; returns the transition's result.
  template <class Transition>
  auto change(const ExecutionId& id, Transition transition) {
    Execution& execution = executions_.at(id);
    const Indexed indexed(*this, execution);
    return transition(execution);
  }

  bool is_live(const LedgerEntry& entry, Time now) const;
  std::optional<Time> dies_at(const LedgerEntry& entry) const;

  // Steps stay as long as their workflow does.
  bool may_be_purged(const Execution& execution) const;

  void erase(const ExecutionId& id);

  std::map<IdentityHash, LedgerEntry> ledger;
  std::map<QueueName, RateState> rates;
  std::map<std::pair<std::string, std::string>, StoredRequest> requests;  // by namespace, request key
  std::map<ExecutionId, std::pair<ClosingReport, Time>> reports;          // until when
  std::map<std::tuple<std::string, SettingDocument::Kind, std::string>, std::string> settings;
  std::map<ExecutionId, std::vector<Event>> histories;               // by run
  std::map<std::pair<ExecutionId, std::int32_t>, Wait> waits;        // by run and step
  std::map<ExecutionId, std::vector<Event>> signals;                 // by run: those that no step has waited for
  std::map<std::string, std::map<std::string, WorkerInfo>> workers;  // by namespace and name
  std::shared_ptr<const QueuePolicies> policies = std::make_shared<QueuePolicies>();

 private:
  // Takes an execution out of the indexes while it changes.
  class Indexed {
   public:
    Indexed(Tables& tables, const Execution& execution) : tables_(tables), execution_(execution) {
      tables_.unindex(execution_);
    }
    ~Indexed() { tables_.index(execution_); }
    Indexed(const Indexed&) = delete;
    Indexed& operator=(const Indexed&) = delete;

   private:
    Tables& tables_;
    const Execution& execution_;
  };

  void index(const Execution& execution);
  void unindex(const Execution& execution);

  std::map<ExecutionId, Execution> executions_;
  std::map<std::pair<std::string, Kind>, std::set<ExecutionId>> ids_;
  std::map<QueueName, OpenTasks> open_;
  std::set<std::pair<std::string, std::string>> queues_;
  std::multimap<std::string, ExecutionId> runs_;
  std::multimap<ExecutionId, ExecutionId> steps_;
  Closed closed_;
  TimeOrder due_;
  std::map<LeaseSecret, std::set<ExecutionId>> claims_;  // those that may be said again
};

}  // namespace hapax::memory
