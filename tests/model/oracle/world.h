// The oracle's state: everything that was stored, in plain maps that every rule scans from end to end. There are no
// indexes and no shortcuts, so that each rule reads like the paragraph of the spec that it is written from.
//
// Nothing here may use the rules under test: store/rules, core/reuse, core/transition and their like. The oracle
// takes only plain values from src/ (ids, times, hashes, the requests and answers of the store's verbs).
// check_oracle.py sees to it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace hapax::oracle {

using Changed = decltype(Effects::ready)::value_type;
using QueueKey = std::pair<std::string, std::string>;  // namespace, queue

// A step of a run that waits for a signal, for a time, or for an execution that is not the run's own.
struct Wait {
  std::string signal;
  std::optional<Time> until;
  std::optional<ExecutionId> on;
};

// A control operation that ran under a request key.
struct KeyedRequest {
  ControlRequest request;
  ControlOutcome outcome;
  Time expires_at;
};

// A report that closed an execution which was deleted since.
struct RememberedReport {
  Report report;
  FinishOutcome answer;
  Time until;
};

// A queue's permits. One permit is `rate.per` milliseconds' worth of debt; each millisecond pays off `rate.count` of
// it. The bucket is full at no debt and empty at `rate.burst` permits.
struct Bucket {
  Rate rate;
  std::int64_t debt = 0;
  Time as_of;
};

struct World {
  Time now;
  std::map<QueueKey, QueuePolicy> policies;
  std::map<ExecutionId, Execution> executions;
  std::map<IdentityHash, LedgerEntry> ledger;
  std::map<QueueKey, KeyedRequest> requests;  // by namespace and request key
  std::map<ExecutionId, RememberedReport> reports;
  std::map<QueueKey, Bucket> buckets;
  std::map<ExecutionId, std::vector<Event>> histories;
  std::map<ExecutionId, std::vector<Event>> signals;           // by run: those that no step has taken
  std::map<std::pair<ExecutionId, std::int32_t>, Wait> waits;  // by run and step

  // ---- reading (world.cpp)
  Execution* find(const ExecutionId& id);
  // None where it was purged, although its id may have come again without its key.
  Execution* owner_of(const LedgerEntry& entry) { return entry.tombstone ? nullptr : find(entry.owner); }
  const QueuePolicy& policy(const std::string& name_space, const std::string& queue);
  Duration retention(const std::string& name_space, const std::string& queue, Kind kind);
  std::optional<Time> due_at(const Execution& execution);  // the first instant at which a sweep has something to do
  std::vector<Event> events_after(const ExecutionId& run, std::int64_t after);
  std::vector<ExecutionId> steps_of(const ExecutionId& run);

  // ---- the life of an execution (life.cpp)
  void start(Execution& execution, const std::string& worker, const LeaseSecret& secret, Duration lease);
  void close(Execution& execution, Status status);
  void end_attempt(Execution& execution, const AttemptError& error, bool reported);
  Duration backoff(const Execution& execution, std::int32_t attempt);
  bool is_current(const Execution& execution, const LeaseToken& token);
  bool was_reported(const Execution& execution, const LeaseToken& token);
  bool request_cancel(Execution& execution);
  static bool waits_for_resume(const Execution& run);
  bool cancel_open(Execution& execution, Effects& effects);
  void announce(const Execution& execution, Effects& effects);
  // What follows from the closing of an execution. Gives what was deleted because its queue retains nothing.
  std::optional<Execution> settle(const ExecutionId& closed, Effects& effects);
  bool may_be_purged(const Execution& execution);
  Execution purge_one(const ExecutionId& id);

  // ---- spec 2: submitting (submit.cpp)
  bool is_live(const LedgerEntry& entry);
  std::optional<Time> dies_at(const LedgerEntry& entry);
  void give_identity(const Execution& execution);
  void claim_here(const Submission& submission, SubmitOutcome& outcome);
  SubmitOutcome submit(const Submission& submission);

  // ---- spec 3: running tasks (work.cpp)
  ClaimOutcome claim(const ClaimRequest& request);
  std::vector<ClaimOutcome> hand_out(std::vector<ExecutionId> ready, const std::vector<ClaimRequest>& waiters);
  bool may_be_handed_out(const Execution& execution);
  ExtendOutcome extend(const Extension& extension);
  FinishOutcome finish(const Report& report);
  SweepOutcome sweep(std::int32_t limit);
  PurgeOutcome purge(std::int32_t limit);

  // ---- spec 4: workflows (steps.cpp, turn.cpp)
  void append(Execution& run, Event event);
  void wake(Execution& run, Effects& effects);
  void deliver(const ExecutionId& run, std::int32_t step, const Execution& closed, Effects& effects);
  void start_step(const ExecutionId& run, Event& command, Submission submission, std::vector<Event>& outcomes,
                  Effects& effects);
  void wait_on(const ExecutionId& run, std::int32_t step, const ExecutionId& execution);
  void start_wait(Execution& run, const Event& command, std::vector<Event>& outcomes);
  void revive(const ExecutionId& run, std::int32_t step, Execution& closed, std::vector<Event>& outcomes,
              Effects& effects);
  void send_signal(const Execution& run, const Event& command, std::vector<Event>& outcomes, Effects& effects);
  bool fire_due(Execution& run);
  void wake_due(Execution& run, Effects& effects);
  TurnOutcome commit_turn(const Turn& turn);

  // ---- spec 5: control operations (control.cpp)
  Execution* latest_run(const std::string& name_space, const std::string& workflow_id);
  ControlOutcome control(const ControlRequest& request);
  ControlOutcome cancel(Execution& target);
  ControlOutcome ask_to_cancel(Execution& run, const ControlRequest& request);
  ControlOutcome retry(Execution& target);
  ControlOutcome resume(Execution& run);
  ControlOutcome fork(const ExecutionId& old, const ControlRequest& request);
  ControlOutcome signal(Execution& run, const ControlRequest& request);
};

void keep_earliest(std::optional<Time>& earliest, const std::optional<Time>& time);
Changed changed(const Execution& execution);
Event outcome_of(std::int32_t step, const Execution& closed);
Event failed_outcome(std::int32_t step, std::string type, std::string message);
Event expired_outcome(std::int32_t step);

}  // namespace hapax::oracle
