// What one transaction has loaded and locked. The verbs apply the rules of core to it in memory, item after item, as
// the memory store does to its tables; then everything that changed is written at once.
//
// All transactions take locks in one order: request keys, identities by hash, the runs of steps, executions by id,
// first those that are open, then queues by number. The workflow rules may lock a step out of order, and the server may
// find a deadlock; then the transaction is repeated.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ledger.h"
#include "core/policy.h"
#include "store/postgres/connection/connection.h"
#include "store/postgres/tables/queue_numbers.h"
#include "store/postgres/tables/rows.h"
#include "store/postgres/tables/run_tables.h"
#include "store/store.h"

namespace hapax::postgres {

// Deletes expired reports: by when, and at most how many.
const Statement& forget_reports();

class Workspace {
 public:
  // Without a clock of the caller's, the time is the server's.
  Workspace(Connection& connection, QueueNumbers& queues, const QueuePolicies& policies, const Clock* clock);

  Connection& connection() { return connection_; }
  QueueNumbers& queues() { return queues_; }
  const QueuePolicies& policies() const { return policies_; }
  Time now();
  std::int32_t queue_no(const QueueName& name) { return queues_.number(connection_, name); }

  // ---- loading

  enum class Extent {
    state,  // without the inputs
    whole   // with them, and their identities
  };
  // Locks executions in order to change them. Where closing deletes them, they are locked as a whole.
  void lock(std::vector<ExecutionId> ids, Extent extent) { lock(std::move(ids), extent, false, {}, {}); }
  // The same for those that may be steps, with the runs that they are steps of.
  void lock_with_runs(std::vector<ExecutionId> ids) { lock(std::move(ids), Extent::state, true, {}, {}); }
  // The same for steps that end, after these runs. No other transaction can then add any of these new steps to the
  // runs, so it is known which of them do not exist.
  void lock_runs(std::vector<ExecutionId> runs, std::vector<ExecutionId> ending,
                 const std::vector<ExecutionId>& new_steps) {
    lock(std::move(ending), Extent::state, false, std::move(runs), new_steps);
  }
  // The open steps of a run.
  std::vector<ExecutionId> lock_open_steps(const ExecutionId& run);
  // The same for those of which only the state matters, and which stay open.
  void lock_open(const std::vector<ExecutionId>& ids);
  // Locks identities, making those that are missing, with their owners and the executions of these ids.
  void lock_identities(std::vector<IdentityHash> hashes, std::vector<ExecutionId> ids);
  // Reads the same without locks: good for answers, not for changes. False: one of them is longer than that, and
  // nothing was read that could be used.
  bool read_identities(const std::vector<IdentityHash>& hashes, const std::vector<ExecutionId>& ids,
                       std::int64_t longest = std::numeric_limits<std::int64_t>::max());
  // How many bytes of payloads that is, for each pair of a hash and an id.
  std::vector<std::int64_t> weigh(const std::vector<IdentityHash>& hashes, const std::vector<ExecutionId>& ids);
  // One execution, locked by now.
  Row* load(const ExecutionId& id);
  // The reports that closed those of these executions which are gone.
  void read_reports(const std::vector<ExecutionId>& ids);

  // ---- the picture

  Row* find(const ExecutionId& id);  // null: there is none
  LedgerEntry* entry(const IdentityHash& hash);
  bool has_locked(const IdentityHash& hash) const { return entries_.contains(hash); }
  const Execution* owner_of(const LedgerEntry& entry);
  std::optional<ClosingReport> report(const ExecutionId& id) const;  // read or kept
  bool is_live(const LedgerEntry& entry);
  std::optional<Time> dies_at(const LedgerEntry& entry);

  // ---- changing it

  void add(Row row);
  void changed(Row& row);
  void erase(Row& row);  // with all that it has but its identity
  void keep_report(const ClosingReport& report, Time until);
  void put_entry(const LedgerEntry& entry);
  void remove_entry(const IdentityHash& hash);

  // What happens in the tables of workflows, gathered.
  RunChanges& runs() { return runs_; }

  // Sends the changes since the last time. Must be followed by a commit, or by nothing in a foreign transaction.
  void write();

  // Names the queues of rows that were read elsewhere.
  void name(std::vector<Row>& rows);

  // What is not stored yet, and what is stored but will be deleted.
  std::vector<const Execution*> new_executions();
  std::vector<ExecutionId> erased_executions();

 private:
  struct Slot {
    Row row;
    bool is_changed = false, is_erased = false;
  };
  struct EntrySlot {
    std::optional<LedgerEntry> entry;
    bool is_changed = false;
    bool had_tombstone = false;
    std::int32_t tombstone_queue = 0;
  };
  struct Reported {
    ClosingReport report;
    std::optional<Time> until;  // absent: it is stored
  };

  void lock(std::vector<ExecutionId> ids, Extent extent, bool with_runs, std::vector<ExecutionId> runs,
            const std::vector<ExecutionId>& new_steps);
  std::vector<IdentityHash> identities_of(const std::vector<ExecutionId>& ids, Extent& extent);
  bool lock_missing(const std::vector<ExecutionId>& ids, const Statement& statement);
  void lock_rows(const std::vector<ExecutionId>& ids);
  void lock_closed_rows(const std::vector<ExecutionId>& ids, bool with_input);
  bool read_stored(const std::vector<ExecutionId>& ids, std::int64_t longest);
  void receive_rows(const Rows& rows);
  void take_in(std::vector<Row> rows);
  Parameters ledger_hashes_of(const std::vector<IdentityHash>& hashes);
  const IdentityHash& asked_hash(Cells& cells) const;
  void receive_entries(const Rows& rows);
  void receive_placed(const Rows& rows);
  void receive_tombstones(const Rows& rows);
  void read_tombstone(Cells& cells, const IdentityHash& hash, EntrySlot& slot);
  void complete_entries();
  void check_owners(const std::vector<IdentityHash>& hashes);

  static void describe(LedgerEntry& entry, const Execution& owner);
  Slot& slot_of(const Row& row) { return rows_.at(row.execution.id); }
  Duration retention_of_owner(const LedgerEntry& entry, const Execution* owner);
  bool has_run(const Row& row);  // it is a step, and the run that has it is there

  void free_slot(const Row& row);
  void write_entries();
  void write_rows();
  void write_reports();
  void unpark();

  Connection& connection_;
  QueueNumbers& queues_;
  const QueuePolicies& policies_;
  const Clock* clock_;
  std::optional<Time> now_;
  std::map<ExecutionId, Slot> rows_;
  std::set<IdentityHash> asked_;  // for, in the ledger
  std::map<IdentityHash, EntrySlot> entries_;
  std::set<std::pair<std::int32_t, std::string>> freed_;  // slots of concurrency keys, by queue
  std::map<ExecutionId, Reported> reports_;
  std::set<ExecutionId> absent_;  // only this transaction can create them
  RunChanges runs_;
};

}  // namespace hapax::postgres
