// What the rules need from a store: its rows, within one transaction. Each store implements it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ledger.h"
#include "core/policy.h"
#include "core/report.h"
#include "core/workflow.h"
#include "store/store.h"

namespace hapax {

// A step whose outcome does not come from its own task or child.
struct Wait {
  ExecutionId run;
  std::int32_t step = 0;
  std::string signal;             // for a signal of this name; empty: for none
  std::optional<Time> until;      // at most so long
  std::optional<ExecutionId> on;  // for an earlier execution

  bool operator==(const Wait&) const = default;
};

// What a store keeps of a control operation that ran, under its request key.
struct PastRequest {
  ControlRequest::Action action = ControlRequest::Action::cancel;
  ExecutionId target;
  std::optional<std::string> workflow_id;
  InputHash parameters;
  ControlOutcome outcome;
};

namespace rules {

class Rows {
 public:
  virtual ~Rows() = default;

  virtual Time now() = 0;  // of this transaction
  virtual const QueuePolicies& policies() = 0;

  // ---- executions

  // Complete and for update: no other transaction changes it before this one ends.
  virtual std::optional<Execution> load(const ExecutionId& id) = 0;
  // The same, without what transitions do not need: type, input, key, identity and failed attempts may be missing. For
  // verbs that lock their executions before the rules run.
  virtual std::optional<Execution> load_state(const ExecutionId& id) { return load(id); }
  virtual bool exists(const ExecutionId& id) { return load(id).has_value(); }
  virtual std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) = 0;
  // Its open tasks and children, by id; closed ones may be among them.
  virtual std::vector<ExecutionId> steps_of(const ExecutionId& run) = 0;

  // `run_in` is the duration that run_at was counted with, from now. Absent: the caller named the time.
  virtual void insert(const Execution& execution, std::optional<Duration> run_in) = 0;
  virtual void save(const Execution& execution) = 0;   // that was loaded, and changed
  virtual void erase(const Execution& execution) = 0;  // with everything it has except its identity

  // By rules::submit(), or a shortcut with the same result.
  virtual SubmitOutcome submit(const Submission& submission) = 0;

  // ---- the ledger. What is pointed to is there until something is changed.

  // Of this execution's identity.
  virtual const LedgerEntry* entry(const Execution& execution) = 0;
  // The same for update, where the transaction does not hold it yet.
  virtual const LedgerEntry* lock_entry(const Execution& execution) { return entry(execution); }
  virtual const Execution* owner(const LedgerEntry& entry) = 0;  // null: it was purged
  // What is stored under the id of a submission. A store that knows from the entry of its identity that there is
  // nothing need not look it up; without an entry it must.
  virtual const Execution* stored(const ExecutionId& id, const LedgerEntry* entry) = 0;
  virtual void put_entry(const Execution& owner, const LedgerEntry& entry) = 0;  // in place of the identity's last one
  virtual void erase_entry(const LedgerEntry& entry) = 0;

  // ---- reports that closed executions which are gone

  virtual std::optional<ClosingReport> find_report(const ExecutionId& id) = 0;  // absent also if it has expired
  virtual void keep_report(const ClosingReport& report, Time until) = 0;

  // ---- request keys

  virtual std::optional<PastRequest> find_request(const std::string& name_space, const std::string& key) = 0;
  virtual void put_request(const std::string& name_space, const std::string& key, const PastRequest& past,
                           Time expires_at) = 0;

  // ---- workflows

  virtual void append(const ExecutionId& run, const std::vector<Event>& events) = 0;  // numbered
  virtual std::vector<Event> events(const ExecutionId& run) = 0;                      // all of them
  virtual void replace_events(const ExecutionId& run, const std::vector<Event>& events) = 0;

  virtual void put_wait(const Wait& wait) = 0;
  virtual std::vector<Wait> waits_of(const ExecutionId& run) = 0;        // by step
  virtual std::vector<Wait> waits_on(const ExecutionId& execution) = 0;  // by run and step
  virtual void erase_wait(const ExecutionId& run, std::int32_t step) = 0;
  virtual void erase_waits(const ExecutionId& run) = 0;

  // Signals that no step has waited for yet. take_signal() returns the oldest of that name and removes it.
  virtual void put_signal(const ExecutionId& run, const Event& signal) = 0;
  virtual std::optional<Event> take_signal(const ExecutionId& run, const std::string& name) = 0;
};

}  // namespace rules
}  // namespace hapax
