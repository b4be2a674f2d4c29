// What the verbs do with rows, over one connection, within a transaction that the caller began. The store has one for
// its writer, and some for its readers, which call only what begins with load, find, count or queue_name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/ledger.h"
#include "core/policy.h"
#include "store/sqlite/rows.h"
#include "store/store.h"

namespace hapax::sqlite {

struct QueueName {
  std::string name_space, queue;
};

class ActivityTables;
class RunTables;

// A ledger entry together with its owner.
struct Held {
  LedgerEntry entry;
  std::optional<Row> owner;  // absent: the entry has its tombstone
};

class Tables {
 public:
  // The file must have this program's schema.
  explicit Tables(std::unique_ptr<Connection> connection);

  Connection& connection() { return *connection_; }

  // Call at the start of each transaction: others may have written since the last one.
  void begin(Time now) {
    last_seq_ = 0;
    clock_set_back_ = clock_set_back_ || now < now_;
    set_back_handled_ = false;
    now_ = now;
  }
  // Call after its commit.
  void committed() {
    if (set_back_handled_) clock_set_back_ = false;
  }
  // Whether a transaction began earlier than one before it, or it is not known, since a committed transaction has
  // handled that.
  bool clock_set_back() const { return clock_set_back_; }
  void handled_clock_set_back() { set_back_handled_ = true; }
  // Forgets what it learned in a transaction that was rolled back.
  void forget();

  // ---- queues

  std::optional<std::int64_t> find_queue(std::string_view name_space, std::string_view queue, Kind kind);
  std::int64_t queue_no(std::string_view name_space, std::string_view queue, Kind kind);  // created if new
  const QueueName& queue_name(std::int64_t queue_no);

  ActivityTables& activities();

  // ---- executions

  RunTables& runs();  // what workflows have beside their executions

  std::optional<Row> load_state(const ExecutionId& id);
  std::optional<Row> load_all(const ExecutionId& id);
  std::optional<Row> load_all(std::int64_t seq);
  void load_attempts(Row& row);  // of a row that was loaded without
  void complete(Row& row);       // with names and attempts, after read_all()
  bool exists(const ExecutionId& id);

  // False, and nothing is written, if there is an execution of that id.
  bool insert(const Row& row);
  std::int64_t next_seq();

  // Writes what a transition changed. `known` failed attempts were in the row before it.
  void save(Row& row, std::size_t known);

  void erase(const Row& row);  // with all that it has but its identity

  // ---- reports that closed executions which are gone

  void keep_report(const ClosingReport& report, Time until);
  std::optional<ClosingReport> find_report(const ExecutionId& id, Time now);
  std::int64_t forget_reports(Time now, std::int64_t limit);  // how many

  // ---- concurrency keys

  std::int64_t count_running(std::int64_t queue_no);
  std::int64_t count_running(std::int64_t queue_no, const std::string& concurrency_key);
  void park(std::int64_t seq);
  // Makes as many parked executions of that key claimable as it has free slots, the first in order first.
  void unpark(std::int64_t queue_no, const std::string& concurrency_key, std::int64_t limit);
  void unpark_all();
  void unpark_where_free(const QueuePolicies& policies);

  // ---- the ledger

  // False if the identity has an entry.
  bool insert_identity(const IdentityHash& hash, std::int64_t owner, std::optional<Time> expires_at);
  void put_identity(const IdentityHash& hash, std::int64_t owner, std::optional<Time> expires_at);
  void bury_identity(const LedgerEntry& entry, std::int64_t owner);  // it gets a tombstone in place of its owner
  bool erase_identity(const IdentityHash& hash);
  std::optional<Held> find_identity(const IdentityHash& hash);
  std::optional<ExecutionId> find_owner(const IdentityHash& hash);  // nothing if it was purged

 private:
  struct Statements;
  struct Less {
    using is_transparent = void;
    using View = std::tuple<std::string_view, std::string_view, Kind>;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return View(a) < View(b);
    }
  };

  std::optional<Row> load(Statement& statement, const ExecutionId& id, void (*read)(const Run&, Row&));
  void name(Row& row);
  void insert_attempts(const Row& row, std::size_t known);

  std::unique_ptr<Connection> connection_;
  std::shared_ptr<Statements> statements_;  // gone before the connection is
  // Made on first use; gone before the connection is.
  std::shared_ptr<RunTables> runs_;
  std::shared_ptr<ActivityTables> activities_;
  std::map<std::tuple<std::string, std::string, Kind>, std::int64_t, Less> queue_numbers_;
  std::map<std::int64_t, QueueName> queue_names_;
  std::int64_t last_seq_ = 0;  // within this transaction; 0: to be asked for
  Time now_;                   // of this transaction
  bool clock_set_back_ = true, set_back_handled_ = false;
};

// One verb's transaction: on what, by which rules, at what time.
struct Batch {
  Tables& tables;
  const QueuePolicies& policies;
  Time now;
};

Duration retention_of_owner(const QueuePolicies& policies, const Held& held);

}  // namespace hapax::sqlite
