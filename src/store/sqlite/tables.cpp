#include "store/sqlite/tables.h"

#include <fmt/format.h>

#include "core/checksum.h"
#include "store/sqlite/activity_tables.h"
#include "store/sqlite/columns.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

struct Tables::Statements {
  explicit Statements(Connection& db)
      : find_queue(db, "SELECT queue_no FROM hapax_queues WHERE name_space = ? AND queue = ? AND kind = ?"),
        insert_queue(db, "INSERT INTO hapax_queues (name_space, queue, kind) VALUES (?, ?, ?)"),
        queue_name(db, "SELECT name_space, queue FROM hapax_queues WHERE queue_no = ?"),
        state_by_id(db, fmt::format("SELECT {} FROM hapax_executions e WHERE e.id = ?", kStateColumns)),
        all_by_id(db, fmt::format("SELECT {} FROM hapax_executions e WHERE e.id = ?", kAllColumns)),
        all_by_seq(db, fmt::format("SELECT {} FROM hapax_executions e WHERE e.seq = ?", kAllColumns)),
        exists(db, "SELECT 1 FROM hapax_executions WHERE id = ?"),
        last_seq(db, "SELECT max(seq) FROM hapax_executions"),
        insert(db, kInsertExecution),
        insert_large(db, "INSERT INTO hapax_large_inputs (seq, input) VALUES (?, ?)"),
        update(db, kUpdateExecution),
        erase(db, "DELETE FROM hapax_executions WHERE seq = ?"),
        erase_large(db, "DELETE FROM hapax_large_inputs WHERE seq = ?"),
        erase_attempts(db, "DELETE FROM hapax_failed_attempts WHERE seq = ?"),
        attempts(db, kSelectAttempts),
        insert_attempt(db, "INSERT INTO hapax_failed_attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
        running(db, "SELECT count(*) FROM hapax_executions INDEXED BY hapax_running WHERE status = 1 AND queue_no = ?"),
        running_with_key(db,
                         "SELECT count(*) FROM hapax_executions INDEXED BY hapax_running"
                         " WHERE status = 1 AND queue_no = ? AND concurrency_key = ?"),
        park(db, "UPDATE hapax_executions SET parked = 1 WHERE seq = ?"),
        unpark(db,
               "UPDATE hapax_executions SET parked = 0 WHERE seq IN (SELECT seq FROM hapax_executions INDEXED BY "
               "hapax_parked"
               " WHERE parked = 1 AND queue_no = ? AND concurrency_key = ? AND type = ?"
               " AND (due_at IS NULL OR due_at > ?)"
               " ORDER BY priority DESC, run_at, id LIMIT ?)"),
        unpark_all(db,
                   "UPDATE hapax_executions SET parked = 0 WHERE seq IN (SELECT seq FROM hapax_executions INDEXED BY "
                   "hapax_parked"
                   " WHERE parked = 1)"),
        parked_type(db,
                    "SELECT type FROM hapax_executions INDEXED BY hapax_parked"
                    " WHERE parked = 1 AND queue_no = ? AND concurrency_key = ? AND type > ? ORDER BY type LIMIT 1"),
        parked_keys(
            db,
            "SELECT DISTINCT queue_no, concurrency_key FROM hapax_executions INDEXED BY hapax_parked WHERE parked = 1"),
        insert_identity(
            db, "INSERT INTO hapax_identities (hash, owner, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"),
        put_identity(db,
                     "INSERT INTO hapax_identities (hash, owner, expires_at) VALUES (?, ?, ?) ON CONFLICT (hash)"
                     " DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at"),
        erase_identity(db, "DELETE FROM hapax_identities WHERE hash = ?"),
        find_identity(db, "SELECT owner, expires_at FROM hapax_identities WHERE hash = ?"),
        find_owner(db,
                   "SELECT e.id FROM hapax_identities i JOIN hapax_executions e ON e.seq = i.owner WHERE i.hash = ?"),
        orphan_identity(db, "UPDATE hapax_identities SET owner = NULL WHERE hash = ?"),
        tombstone(db,
                  fmt::format("SELECT {} FROM hapax_tombstones t JOIN hapax_queues q USING (queue_no) WHERE t.hash = ?",
                              kTombstoneColumns)),
        insert_tombstone(
            db,
            "INSERT INTO hapax_tombstones (hash, expires_at, queue_no, owner, input_hash, identity_strategy,"
            " identity_scope_tag, identity_scope_name, kind, type, idempotency_key, status, created_at,"
            " finished_at)"
            " SELECT identity_hash, ?, queue_no, id, input_hash, identity_strategy, identity_scope_tag,"
            " identity_scope_name, kind, type, idempotency_key, ?, created_at, ?"
            " FROM hapax_executions WHERE seq = ?"),
        erase_tombstone(db, "DELETE FROM hapax_tombstones WHERE hash = ?"),
        put_report(
            db,
            "INSERT OR REPLACE INTO hapax_closing_reports (id, expires_at, attempt, secret, said, status, queue_no,"
            " had_concurrency_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
        find_report(db,
                    "SELECT attempt, secret, said, status, queue_no, had_concurrency_key FROM hapax_closing_reports"
                    " WHERE id = ? AND expires_at > ?"),
        forget_reports(db,
                       "DELETE FROM hapax_closing_reports WHERE id IN (SELECT id FROM hapax_closing_reports"
                       " INDEXED BY hapax_closing_report_ends WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)") {}

  Statement find_queue, insert_queue, queue_name;
  Statement state_by_id, all_by_id, all_by_seq, exists, last_seq;
  Statement insert, insert_large, update, erase, erase_large, erase_attempts, attempts, insert_attempt;
  Statement running, running_with_key, park, unpark, unpark_all, parked_type, parked_keys;
  Statement insert_identity, put_identity, erase_identity, find_identity, find_owner, orphan_identity;
  Statement tombstone, insert_tombstone, erase_tombstone;
  Statement put_report, find_report, forget_reports;
};

Tables::Tables(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)), statements_(std::make_shared<Statements>(*connection_)) {}

void Tables::forget() {
  queue_numbers_.clear();
  queue_names_.clear();
  last_seq_ = 0;
}

// ---- queues

std::optional<std::int64_t> Tables::find_queue(std::string_view name_space, std::string_view queue, Kind kind) {
  if (const auto known = queue_numbers_.find(Less::View(name_space, queue, kind)); known != queue_numbers_.end()) {
    return known->second;
  }
  Run run(statements_->find_queue);
  run.bind(name_space).bind(queue).bind(kind);
  if (!run.next()) return std::nullopt;
  const std::int64_t number = run.int64(0);
  queue_numbers_.emplace(std::tuple(name_space, queue, kind), number);
  return number;
}

std::int64_t Tables::queue_no(std::string_view name_space, std::string_view queue, Kind kind) {
  if (const auto known = find_queue(name_space, queue, kind)) return *known;
  Run(statements_->insert_queue).bind(name_space).bind(queue).bind(kind).done();
  const std::int64_t number = sqlite3_last_insert_rowid(connection_->handle());
  queue_numbers_.emplace(std::tuple(name_space, queue, kind), number);
  return number;
}

const QueueName& Tables::queue_name(std::int64_t queue_no) {
  if (const auto known = queue_names_.find(queue_no); known != queue_names_.end()) return known->second;
  Run run(statements_->queue_name);
  run.bind(queue_no);
  if (!run.next()) {
    throw Failure(Failure::Code::corrupt, fmt::format("{}: queue {} has no name; restore the file from a backup",
                                                      connection_->path(), queue_no));
  }
  return queue_names_[queue_no] = {std::string(run.text(0)), std::string(run.text(1))};
}

// ---- executions

void Tables::name(Row& row) {
  const QueueName& name = queue_name(row.queue_no);
  row.execution.name_space = name.name_space;
  row.execution.queue = name.queue;
  if (row.execution.kind == Kind::workflow) runs().load(row);
}

RunTables& Tables::runs() {
  if (!runs_) runs_ = std::make_shared<RunTables>(*connection_);
  return *runs_;
}

ActivityTables& Tables::activities() {
  if (!activities_) activities_ = std::make_shared<ActivityTables>(*connection_);
  return *activities_;
}

std::optional<Row> Tables::load(Statement& statement, const ExecutionId& id, void (*read)(const Run&, Row&)) {
  std::optional<Row> row;
  {
    Run run(statement);
    if (!run.bind(id).next()) return row;
    read(run, row.emplace());
  }
  name(*row);
  return row;
}

std::optional<Row> Tables::load_state(const ExecutionId& id) { return load(statements_->state_by_id, id, read_state); }

std::optional<Row> Tables::load_all(const ExecutionId& id) {
  std::optional<Row> row = load(statements_->all_by_id, id, read_all);
  if (row) load_attempts(*row);
  return row;
}

void Tables::complete(Row& row) {
  name(row);
  load_attempts(row);
}

std::optional<Row> Tables::load_all(std::int64_t seq) {
  std::optional<Row> row;
  {
    Run run(statements_->all_by_seq);
    if (!run.bind(seq).next()) return row;
    read_all(run, row.emplace());
  }
  complete(*row);
  return row;
}

void Tables::load_attempts(Row& row) {
  if (row.failures == 0) return;
  Run run(statements_->attempts);
  run.bind(row.seq);
  while (run.next()) {
    const AttemptRecord& record = row.execution.failed_attempts.emplace_back(read_attempt(run));
    if (!matches(run, kAttemptChecksum, checksum_of(record))) row.execution.damaged = true;
  }
}

bool Tables::exists(const ExecutionId& id) {
  Run run(statements_->exists);
  return run.bind(id).next();
}

std::int64_t Tables::next_seq() {
  if (last_seq_ == 0) {
    Run run(statements_->last_seq);
    run.next();
    last_seq_ = run.int64(0);
  }
  return last_seq_ + 1;
}

bool Tables::insert(const Row& row) {
  Run run(statements_->insert);
  bind_new(run, row);
  if (run.done() == 0) return false;
  last_seq_ = row.seq;
  if (row.execution.input.size() > kLargeInput) {
    Run(statements_->insert_large).bind(row.seq).bind(row.execution.input).done();
  }
  if (row.execution.kind == Kind::workflow) runs().insert(row);
  return true;
}

void Tables::insert_attempts(const Row& row, std::size_t known) {
  const auto& attempts = row.execution.failed_attempts;
  for (std::size_t i = known; i < attempts.size(); ++i) {
    const AttemptRecord& record = attempts[i];
    const std::int64_t ordinal = row.failures - static_cast<std::int64_t>(attempts.size() - i);
    Run run(statements_->insert_attempt);
    run.bind(row.seq).bind(ordinal);
    fields(BindColumns(run), record);
    run.bind(std::int64_t{checksum_of(record)}).done();
  }
}

void Tables::save(Row& row, std::size_t known) {
  row.failures += static_cast<std::int32_t>(row.execution.failed_attempts.size() - known);
  {
    Run run(statements_->update);
    bind_state(run, row, now_);
    run.done();
  }
  row.stored_run_at = row.execution.run_at;
  row.stored_lease_end = row.execution.lease_expires_at;
  insert_attempts(row, known);
  if (row.execution.kind == Kind::workflow) runs().save(row);
}

void Tables::erase(const Row& row) {
  if (row.execution.kind == Kind::workflow) runs().erase(row.seq);
  if (row.failures > 0) Run(statements_->erase_attempts).bind(row.seq).done();
  Run(statements_->erase_large).bind(row.seq).done();
  Run(statements_->erase).bind(row.seq).done();
  // Rows at the end of the table may be gone now, and their numbers free again.
  last_seq_ = 0;
}

// ---- reports

void Tables::keep_report(const ClosingReport& report, Time until) {
  Run run(statements_->put_report);
  run.bind(report.token.execution).bind(until).bind(report.token.attempt).bind(report.token.secret);
  run.bind(report.said).bind(report.status).bind(queue_no(report.name_space, report.queue, Kind::task));
  run.bind(static_cast<std::int32_t>(report.had_concurrency_key)).done();
}

std::optional<ClosingReport> Tables::find_report(const ExecutionId& id, Time now) {
  ClosingReport report;
  std::int64_t queue_no = 0;
  {
    Run run(statements_->find_report);
    if (!run.bind(id).bind(now).next()) return std::nullopt;
    report.token = {id, run.int32(0), run.bytes<LeaseSecret>(1)};
    report.said = run.bytes<InputHash>(2).bytes;
    report.status = static_cast<Status>(run.int32(3));
    queue_no = run.int64(4);
    report.had_concurrency_key = run.int32(5) != 0;
  }
  const QueueName& name = queue_name(queue_no);
  report.name_space = name.name_space;
  report.queue = name.queue;
  return report;
}

std::int64_t Tables::forget_reports(Time now, std::int64_t limit) {
  return Run(statements_->forget_reports).bind(now).bind(limit).done();
}

// ---- concurrency keys

std::int64_t Tables::count_running(std::int64_t queue_no) {
  Run run(statements_->running);
  run.bind(queue_no).next();
  return run.int64(0);
}

std::int64_t Tables::count_running(std::int64_t queue_no, const std::string& concurrency_key) {
  Run run(statements_->running_with_key);
  run.bind(queue_no).bind(concurrency_key).next();
  return run.int64(0);
}

void Tables::park(std::int64_t seq) { Run(statements_->park).bind(seq).done(); }

void Tables::unpark(std::int64_t queue_no, const std::string& concurrency_key, std::int64_t limit) {
  const std::int64_t free = limit - count_running(queue_no, concurrency_key);
  if (free <= 0) return;
  // Of each type, since nobody may claim the first one's. The claims count the slots again.
  for (std::string type;;) {
    {
      Run run(statements_->parked_type);
      if (!run.bind(queue_no).bind(concurrency_key).bind(type).next()) return;
      type = run.text(0);
    }
    // One whose deadline has passed is never claimed: it must not take the slot of the next.
    Run(statements_->unpark).bind(queue_no).bind(concurrency_key).bind(type).bind(now_).bind(free).done();
  }
}

void Tables::unpark_all() { Run(statements_->unpark_all).done(); }

void Tables::unpark_where_free(const QueuePolicies& policies) {
  std::vector<std::pair<std::int64_t, std::string>> keys;
  {
    Run run(statements_->parked_keys);
    while (run.next()) keys.emplace_back(run.int64(0), run.text(1));
  }
  for (const auto& [queue_no, key] : keys) {
    const QueueName& name = queue_name(queue_no);
    unpark(queue_no, key, policies.of(name.name_space, name.queue).concurrency_limit);
  }
}

// ---- the ledger

bool Tables::insert_identity(const IdentityHash& hash, std::int64_t owner, std::optional<Time> expires_at) {
  return Run(statements_->insert_identity).bind(hash).bind(owner).bind(expires_at).done() == 1;
}

void Tables::put_identity(const IdentityHash& hash, std::int64_t owner, std::optional<Time> expires_at) {
  Run(statements_->put_identity).bind(hash).bind(owner).bind(expires_at).done();
  Run(statements_->erase_tombstone).bind(hash).done();
}

void Tables::bury_identity(const LedgerEntry& entry, std::int64_t owner) {
  const Tombstone& tombstone = *entry.tombstone;
  Run run(statements_->insert_tombstone);
  run.bind(*entry.expires_at).bind(tombstone.status).bind(tombstone.finished_at).bind(owner).done();
  Run(statements_->orphan_identity).bind(entry.identity.hash).done();
}

bool Tables::erase_identity(const IdentityHash& hash) {
  Run(statements_->erase_tombstone).bind(hash).done();
  return Run(statements_->erase_identity).bind(hash).done() == 1;
}

std::optional<ExecutionId> Tables::find_owner(const IdentityHash& hash) {
  Run run(statements_->find_owner);
  if (!run.bind(hash).next()) return std::nullopt;
  return run.bytes<ExecutionId>(0);
}

std::optional<Held> Tables::find_identity(const IdentityHash& hash) {
  std::optional<Held> held;
  std::optional<std::int64_t> owner;
  {
    Run run(statements_->find_identity);
    if (!run.bind(hash).next()) return held;
    held.emplace();
    if (!run.is_null(0)) owner = run.int64(0);
    held->entry.expires_at = run.time_if(1);
  }
  LedgerEntry& entry = held->entry;
  if (owner && (held->owner = load_all(*owner))) {
    const Execution& execution = held->owner->execution;
    entry.identity = *execution.identity;
    entry.name_space = execution.name_space;
    entry.owner = execution.id;
    entry.input_hash = execution.input_hash;
    entry.created_at = execution.created_at;
    return held;
  }
  Run run(statements_->tombstone);
  if (!run.bind(hash).next()) {
    throw Failure(Failure::Code::corrupt,
                  fmt::format("{}: the identity {} has no owner; restore the file from a backup", connection_->path(),
                              hash.to_string()));
  }
  entry.identity.hash = hash;
  read_tombstone(run, 0, entry);
  return held;
}

Duration retention_of_owner(const QueuePolicies& policies, const Held& held) {
  if (held.owner) return policies.retention(held.owner->execution);
  return policies.retention(held.entry.name_space, held.entry.tombstone->queue, held.entry.tombstone->kind);
}

}  // namespace hapax::sqlite
