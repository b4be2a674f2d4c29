// What one transaction reads and changes, as executions, ledger entries and requests rather than bytes: the rules run
// on it in memory, commit() writes the changes, with their hints.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/policy.h"
#include "store/call_deadline.h"
#include "store/s3/documents/documents.h"
#include "store/s3/documents/names.h"
#include "store/s3/transaction/transaction.h"

namespace hapax::s3 {

// The hints that a changed document needs, and those it needs no more. Sets document.hints.
struct HintChange {
  std::vector<std::string> added, dropped;
};
HintChange place_hints(TaskDocument& document, const std::vector<std::string>& before, Time now);

class Workspace {
 public:
  Workspace(Bucket& bucket, const QueuePolicies& policies, Time now)
      : bucket_(bucket), policies_(policies), now_(now), transaction_(bucket) {}

  Bucket& bucket() { return bucket_; }
  const QueuePolicies& policies() const { return policies_; }
  Time now() const { return now_; }

  // ---- executions

  // Null if there is none. What is changed through it is written; pointers stay valid.
  TaskDocument* task(const ExecutionId& id);
  void prefetch(const std::vector<ExecutionId>& ids);
  void insert(Execution execution);
  const std::optional<Grave>& grave(const ExecutionId& id);  // of one that is not there
  void renew_hints(const ExecutionId& id);                   // even those that would still serve

  void erase(const ExecutionId& id);                          // all but its ledger entry
  void keep_report(const ClosingReport& report, Time until);  // of one that was erased in this transaction

  std::vector<ExecutionId> steps_of(const ExecutionId& run);
  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id);
  void add_waiter(const ExecutionId& awaited, const Waiter& waiter);  // also of one that is inserted later

  // ---- the ledger

  Record* record_for(const Execution& execution);  // of its identity, whatever owns that
  Record* record(const IdentityHash& hash);
  Record& put_record(const Execution& owner, const LedgerEntry& entry);
  void erase_record(const Record& record);

  // ---- requests

  std::optional<RequestDocument> request(const std::string& name_space, const std::string& request_key);
  void put_request(const std::string& name_space, const std::string& request_key, const RequestDocument& request);

  // False: another process was faster; decide again in a new workspace.
  bool commit();

 private:
  struct TaskSlot {
    std::optional<TaskDocument> before, document;
    std::optional<Grave> grave;  // found, or to be made
    bool renewed = false;
  };
  struct RecordSlot {
    std::optional<Record> before, record;
    bool taken = false;  // given to a new owner: written even if it says the same
  };

  TaskSlot& slot(const ExecutionId& id);
  RecordSlot& slot(const std::string& record_name);
  std::string known_record_name(const IdentityHash& hash);
  void finish_creating(Record& record);
  void write_task(const ExecutionId& id, TaskSlot& slot);
  void write_record(const std::string& name, RecordSlot& slot);
  std::optional<std::pair<std::string, ExecutionId>> only_a_new_keyed_task() const;

  Bucket& bucket_;
  const QueuePolicies& policies_;
  const Time now_;
  Transaction transaction_;
  std::map<ExecutionId, TaskSlot> tasks_;
  std::map<std::string, RecordSlot> records_;  // by name
  std::map<IdentityHash, std::string> record_names_;
  std::map<std::string, RequestDocument> requests_;     // changed ones, by name
  std::map<ExecutionId, std::vector<Waiter>> waiters_;  // of executions that are not there yet
  bool torn_ = false;                                   // what was read does not belong together
};

// Runs the work on workspaces until one commits.
template <class Work>
auto transact(Bucket& bucket, const QueuePolicies& policies, Time now, Work work) {
  for (int tried = 0;; ++tried) {
    Workspace workspace(bucket, policies, now);
    auto outcome = work(workspace);
    if (workspace.commit()) return outcome;
    if (tried >= 100 || CallDeadline::is_over()) {
      throw Failure(Failure::Code::unavailable, "others changed the same objects again and again; try again");
    }
    pause_before_try(tried);
  }
}

}  // namespace hapax::s3
