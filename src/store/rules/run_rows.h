// What the rules of workflows need of a store: its rows, within one transaction. Each store has one; the rules are
// written once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/policy.h"
#include "core/workflow.h"
#include "store/store.h"

namespace hapax {

// A step whose outcome does not come from a task or child of its own.
struct Wait {
  ExecutionId run;
  std::int32_t step = 0;
  std::string signal;             // for a signal of this name; empty: for none
  std::optional<Time> until;      // at most so long
  std::optional<ExecutionId> on;  // for an execution that was there before

  bool operator==(const Wait&) const = default;
};

class RunRows {
 public:
  virtual ~RunRows() = default;

  virtual Time now() const = 0;  // of this transaction
  virtual const QueuePolicies& policies() const = 0;

  // For update: nobody else changes it before this transaction ends.
  virtual std::optional<Execution> load(const ExecutionId& id) = 0;
  virtual std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) = 0;
  // Its open tasks and children, by id; closed ones may be among them.
  virtual std::vector<ExecutionId> steps_of(const ExecutionId& run) = 0;

  virtual void insert(const Execution& execution) = 0;
  virtual void save(const Execution& execution) = 0;  // that was loaded, and changed
  virtual SubmitOutcome submit(const Submission& submission) = 0;
  virtual void purge_if_unretained(const ExecutionId& id) = 0;  // one that has just been closed

  // The ledger: who owns a live identity; and giving it to an execution, with the expiry that the entry has.
  virtual std::optional<ExecutionId> live_owner(const IdentityHash& hash) = 0;
  virtual void give_identity(const Execution& execution) = 0;

  virtual void append(const ExecutionId& run, const std::vector<Event>& events) = 0;  // numbered
  virtual std::vector<Event> events(const ExecutionId& run) = 0;                      // all of them
  virtual void replace_events(const ExecutionId& run, const std::vector<Event>& events) = 0;

  virtual void put_wait(const Wait& wait) = 0;
  virtual std::vector<Wait> waits_of(const ExecutionId& run) = 0;        // by step
  virtual std::vector<Wait> waits_on(const ExecutionId& execution) = 0;  // by run and step
  virtual void erase_wait(const ExecutionId& run, std::int32_t step) = 0;
  virtual void erase_waits(const ExecutionId& run) = 0;

  // Signals that nobody has waited for yet. take_signal() gives the oldest of that name, and forgets it.
  virtual void put_signal(const ExecutionId& run, const Event& signal) = 0;
  virtual std::optional<Event> take_signal(const ExecutionId& run, const std::string& name) = 0;
};

}  // namespace hapax
