// What a workspace changed, sent to the server.
#include <fmt/format.h>

#include <utility>

#include "store/postgres/workspace.h"

namespace hapax::postgres {

namespace {

Statement insert_statement(const std::string& table, const RowType& rows) {
  return {"insert_" + table, insert_into(table, rows)};
}

Statement update_state(const std::string& table) {
  std::string assignments;
  for (const Column& column : state_columns()) assignments += fmt::format(", {0} = g.{0}", column.name);
  return {"update_" + table,
          fmt::format("UPDATE {} o SET parked = false{} FROM {}, {} WHERE o.ctid = s.place", table, assignments,
                      unnest(state_rows(), 1, "g"), lookup_place(table, "id", "g.id", "s"))};
}

const Statement kInsertFacts{
    "insert_executions",
    fmt::format("{} FROM {}", insert_facts(fact_rows().columns, names(fact_rows().columns, "g"), "g"),
                unnest(fact_rows(), 1, "g"))};
const Statement kInsertOpen = insert_statement("open", state_rows());
const Statement kInsertClosed = insert_statement("closed", state_rows());
const Statement kUpdateOpen = update_state("open");
const Statement kUpdateClosed = update_state("closed");
const Statement kDeleteOpen{"delete_open", "DELETE FROM open WHERE id = ANY($1::uuid[])"};
const Statement kDeleteClosed{"delete_closed", "DELETE FROM closed WHERE id = ANY($1::uuid[])"};
const Statement kDeleteFacts{"delete_facts", "DELETE FROM executions WHERE id = ANY($1::uuid[])"};

const Statement kPutIdentities{"put_identities",
                               "UPDATE identities i SET owner = g.owner, expires_at = g.expires_at FROM"
                               " unnest($1::uuid[], $2::uuid[], $3::int8[]) AS g (hash, owner, expires_at), " +
                                   lookup_place("identities", "hash", "g.hash", "s") + " WHERE i.ctid = s.place"};
const Statement kDeleteIdentities{"delete_identities", "DELETE FROM identities WHERE hash = ANY($1::uuid[])"};
const Statement kDeleteTombstones{"delete_tombstones", "DELETE FROM tombstones WHERE hash = ANY($1::bytea[])"};
const Statement kInsertTombstones{
    "insert_tombstones",
    "INSERT INTO tombstones (hash, expires_at, queue_no, owner, input_hash, identity_strategy, identity_scope_tag,"
    " identity_scope_name, kind, type,"
    " idempotency_key, status, created_at, finished_at)"
    " SELECT e.identity_hash, g.expires_at, e.queue_no, e.id, e.input_hash, e.identity_strategy,"
    " e.identity_scope_tag, e.identity_scope_name, e.kind,"
    " e.type, e.idempotency_key, g.status, e.created_at, g.finished_at"
    " FROM unnest($1::uuid[], $2::int8[], $3::int2[], $4::int8[]) AS g (id, expires_at, status, finished_at)"
    " JOIN " +
        lookup("executions", "id", "g.id", "e") + " ON true"};

const Column kReportColumns[] = {
    {"id", Type::uuid},    {"expires_at", Type::int8}, {"attempt", Type::int4},  {"secret", Type::bytea},
    {"said", Type::bytea}, {"status", Type::int2},     {"queue_no", Type::int4}, {"had_concurrency_key", Type::boolean},
};
const Statement kPutReports{
    "put_reports", fmt::format("INSERT INTO closing_reports ({0}) SELECT {0} FROM {1} ON CONFLICT (id) DO UPDATE SET"
                               " expires_at = excluded.expires_at, attempt = excluded.attempt,"
                               " secret = excluded.secret, said = excluded.said, status = excluded.status",
                               names(kReportColumns), unnest(kReportColumns, 1, "g"))};
const Statement kLockQueues{
    "lock_queues", "SELECT queue_no FROM queues WHERE queue_no = ANY($1::int4[]) ORDER BY queue_no FOR UPDATE"};

// Of each type, since nobody may claim the first one's. The claims count the slots again.
const Statement kUnpark{"unpark", R"sql(
UPDATE open o SET parked = false
FROM unnest($1::int4[], $2::bytea[], $3::int4[], $4::int8[]) AS g (queue_no, concurrency_key, slots, now),
LATERAL (
  WITH RECURSIVE k (type) AS (
    (SELECT w.type FROM open w WHERE w.parked AND w.queue_no = g.queue_no AND w.concurrency_key = g.concurrency_key
     ORDER BY w.type LIMIT 1)
    UNION ALL
    SELECT (SELECT w.type FROM open w WHERE w.parked AND w.queue_no = g.queue_no
            AND w.concurrency_key = g.concurrency_key AND w.type > k.type ORDER BY w.type LIMIT 1)
    FROM k WHERE k.type IS NOT NULL)
  SELECT k.type FROM k WHERE k.type IS NOT NULL) t,
LATERAL (
  SELECT w.ctid AS place FROM open w WHERE w.parked AND w.queue_no = g.queue_no
  AND w.concurrency_key = g.concurrency_key AND w.type = t.type AND (w.due_at IS NULL OR w.due_at > g.now)
  ORDER BY w.priority DESC, w.run_at, w.id
  LIMIT greatest(0, g.slots - (SELECT count(*) FROM open r WHERE r.status = 1 AND r.queue_no = g.queue_no
                               AND r.concurrency_key = g.concurrency_key))) p
WHERE o.ctid = p.place)sql"};

void send_if_any(Connection& connection, const Statement& statement, Array array) {
  if (array.size() == 0) return;
  Parameters parameters;
  parameters.array(std::move(array));
  connection.send_silently(statement, parameters);
}

void send_if_any(Connection& connection, const Statement& statement, Columns& columns) {
  if (columns.rows() == 0) return;
  Parameters parameters;
  columns.bind(parameters);
  connection.send_silently(statement, parameters);
}

}  // namespace

const Statement& forget_reports() {
  static const Statement statement{"forget_reports",
                                   "DELETE FROM closing_reports WHERE ctid = ANY(ARRAY(SELECT x.ctid FROM "
                                   "closing_reports x WHERE x.expires_at <= $1::int8"
                                   " ORDER BY x.expires_at LIMIT $2::int8 FOR UPDATE SKIP LOCKED))"};
  return statement;
}

void Workspace::add(Row row) {
  const ExecutionId id = row.execution.id;
  if (row.execution.parent) load(*row.execution.parent);
  // One that this transaction has erased: what is stored of it must go first.
  if (const auto before = rows_.find(id); before != rows_.end() && before->second.is_erased) write();
  row.stored = Row::Place::nowhere;
  rows_.insert_or_assign(id, Slot{std::move(row), true});
}

void Workspace::changed(Row& row) {
  slot_of(row).is_changed = true;
  free_slot(row);
}

void Workspace::erase(Row& row) {
  slot_of(row).is_erased = true;
  free_slot(row);
}

// A slot of a concurrency key is free whenever one of its executions does not run, whether it ran before or not.
void Workspace::free_slot(const Row& row) {
  const Execution& execution = row.execution;
  const bool runs = execution.status == Status::running && !slot_of(row).is_erased;
  if (execution.concurrency_key && !runs) freed_.emplace(row.queue_no, *execution.concurrency_key);
}

// Under the run's lock: a purge of the run frees its closed steps, or this transaction sees that it is gone.
bool Workspace::has_run(const Row& row) { return row.execution.parent && load(*row.execution.parent); }

void Workspace::keep_report(const ClosingReport& report, Time until) {
  reports_.insert_or_assign(report.token.execution, Reported{report, until});
}

std::vector<const Execution*> Workspace::new_executions() {
  std::vector<const Execution*> found;
  for (const auto& [id, slot] : rows_) {
    if (slot.row.stored == Row::Place::nowhere && !slot.is_erased) found.push_back(&slot.row.execution);
  }
  return found;
}

std::vector<ExecutionId> Workspace::erased_executions() {
  std::vector<ExecutionId> found;
  for (const auto& [id, slot] : rows_) {
    if (slot.is_erased) found.push_back(id);
  }
  return found;
}

void Workspace::put_entry(const LedgerEntry& entry) {
  EntrySlot& slot = entries_[entry.identity.hash];
  slot.is_changed = true;
  slot.entry = entry;
}

void Workspace::remove_entry(const IdentityHash& hash) {
  EntrySlot& slot = entries_[hash];
  slot.is_changed = true;
  slot.entry.reset();
}

void Workspace::write() {
  runs_.write(connection_);
  write_entries();
  write_rows();
  write_reports();
  unpark();
}

void Workspace::write_entries() {
  Columns put(std::vector<Column>{{"hash", Type::uuid}, {"owner", Type::uuid}, {"expires_at", Type::int8}});
  Columns buried(std::vector<Column>{
      {"id", Type::uuid}, {"expires_at", Type::int8}, {"status", Type::int2}, {"finished_at", Type::int8}});
  Array removed(Type::uuid), unburied(Type::bytea);
  for (auto& [hash, slot] : entries_) {
    if (!std::exchange(slot.is_changed, false)) continue;
    if (slot.entry) {
      write_ledger_hash(put[0], hash);
      put[1].raw(slot.entry->owner);
      put[2].time_if(slot.entry->expires_at);
    } else {
      write_ledger_hash(removed, hash);
    }
    const bool has_tombstone = slot.entry && slot.entry->tombstone;
    if (slot.had_tombstone && !has_tombstone) unburied.raw(hash);
    if (has_tombstone && !slot.had_tombstone) {
      buried[0].raw(slot.entry->owner);
      buried[1].time(*slot.entry->expires_at);
      buried[2].word(slot.entry->tombstone->status);
      buried[3].time(slot.entry->tombstone->finished_at);
    }
    slot.had_tombstone = has_tombstone;
  }
  send_if_any(connection_, kDeleteTombstones, std::move(unburied));
  send_if_any(connection_, kDeleteIdentities, std::move(removed));
  send_if_any(connection_, kPutIdentities, put);
  send_if_any(connection_, kInsertTombstones, buried);
}

void Workspace::write_rows() {
  Batch facts(fact_rows()), opened(state_rows()), closed(state_rows());
  Batch updated_open(state_rows()), updated_closed(state_rows());
  Array left_open(Type::uuid), left_closed(Type::uuid), erased(Type::uuid);
  std::vector<ExecutionId> erased_runs;
  for (auto& [id, slot] : rows_) {
    Row& row = slot.row;
    const bool was_changed = std::exchange(slot.is_changed, false);
    if (!was_changed && !slot.is_erased) continue;
    if (row.stored == Row::Place::nowhere && slot.is_erased) {
      // Made and erased in this transaction: there is nothing of it but its history.
      if (was_changed && row.execution.kind == Kind::workflow) erased_runs.push_back(id);
      continue;
    }
    const Row::Place goal = slot.is_erased                    ? Row::Place::nowhere
                            : is_closed(row.execution.status) ? Row::Place::closed
                                                              : Row::Place::open;
    if (row.stored == Row::Place::nowhere) write_facts(facts, row.execution, row.queue_no);
    if (goal == row.stored) {
      write_state_row(goal == Row::Place::open ? updated_open : updated_closed, row, false);
      continue;
    }
    if (row.stored == Row::Place::open) left_open.raw(id);
    if (row.stored == Row::Place::closed) left_closed.raw(id);
    if (goal == Row::Place::nowhere) erased.raw(id);
    if (goal == Row::Place::nowhere && row.execution.kind == Kind::workflow) erased_runs.push_back(id);
    if (goal == Row::Place::open) write_state_row(opened, row, row.execution.parent.has_value());
    if (goal == Row::Place::closed) write_state_row(closed, row, has_run(row));
    row.stored = goal;
  }
  send_if_any(connection_, kDeleteOpen, std::move(left_open));
  send_if_any(connection_, kDeleteClosed, std::move(left_closed));
  send_if_any(connection_, kDeleteFacts, std::move(erased));
  send_silently(connection_, kInsertFacts, std::move(facts));
  send_silently(connection_, kInsertOpen, std::move(opened));
  send_silently(connection_, kInsertClosed, std::move(closed));
  if (!erased_runs.empty()) erase_runs(connection_, erased_runs);
  send_silently(connection_, kUpdateOpen, std::move(updated_open));
  send_silently(connection_, kUpdateClosed, std::move(updated_closed));
}

void Workspace::write_reports() {
  Columns columns(kReportColumns);
  for (auto& [id, reported] : reports_) {
    const std::optional<Time> until = std::exchange(reported.until, std::nullopt);
    if (!until) continue;
    const ClosingReport& report = reported.report;
    columns.begin_row();
    columns.next().raw(report.token.execution);
    columns.next().time(*until);
    columns.next().integer(report.token.attempt);
    columns.next().raw(report.token.secret);
    columns.next().bytes({reinterpret_cast<const char*>(report.said.data()), report.said.size()});
    columns.next().word(report.status);
    columns.next().integer(queue_no({report.name_space, report.queue, Kind::task}));
    columns.next().boolean(report.had_concurrency_key);
  }
  if (columns.rows() == 0) return;
  // So that the table does not wait for a cleanup to stay small.
  connection_.send_silently(forget_reports(), Parameters().time(now()).int8(2 * columns.rows()));
  send_if_any(connection_, kPutReports, columns);
}

// Under the lock of the queues, as claims count: a task that has just been parked is seen here, or has seen the free
// slot.
void Workspace::unpark() {
  if (freed_.empty()) return;
  Array numbers(Type::int4);
  for (const auto& [queue_no, key] : freed_) numbers.integer(queue_no);
  send_if_any(connection_, kLockQueues, std::move(numbers));
  Columns freed(std::vector<Column>{
      {"queue_no", Type::int4}, {"concurrency_key", Type::bytea}, {"slots", Type::int4}, {"now", Type::int8}});
  for (const auto& [queue_no, key] : freed_) {
    const QueueName name = queues_.name_of(queue_no);
    freed[0].integer(queue_no);
    freed[1].bytes(key);
    freed[2].integer(policies_.of(name.name_space, name.queue).concurrency_limit);
    freed[3].time(now());  // one whose deadline has passed is never claimed: it must not take the slot of the next
  }
  send_if_any(connection_, kUnpark, freed);
  freed_.clear();
}

}  // namespace hapax::postgres
