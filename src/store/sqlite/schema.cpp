#include "store/sqlite/schema.h"

#include <fmt/format.h>

#include <array>
#include <thread>

#include "store/sqlite/rows.h"

namespace hapax::sqlite {

namespace {

// The file may be an application's own: whatever is ours has a name that begins with hapax_, and nothing else is
// touched. Times are milliseconds since the epoch, ids and hashes their raw bytes, enumerations their numbers.
constexpr const char* kTables = R"sql(
-- The version of these tables; and what tells this data from any other that may take its place.
CREATE TABLE hapax_store (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  version INTEGER NOT NULL,
  identity BLOB NOT NULL
);
INSERT INTO hapax_store (only_one, version, identity) VALUES (1, 0, randomblob(16));

-- A queue's number stands for its name in every row and index below.
CREATE TABLE hapax_queues (
  queue_no INTEGER PRIMARY KEY,
  name_space TEXT NOT NULL,
  queue TEXT NOT NULL,
  kind INTEGER NOT NULL,  -- of what waits here: the turns of workflows have a number apart from the tasks
  UNIQUE (name_space, queue, kind)
);

CREATE UNIQUE INDEX hapax_execution_ids ON hapax_executions (id);
CREATE INDEX hapax_ready ON hapax_executions (queue_no, type, priority DESC, run_at, id) WHERE status = 0 AND parked = 0;
CREATE INDEX hapax_parked ON hapax_executions (queue_no, concurrency_key, type, priority DESC, run_at, id)
  WHERE parked = 1;
CREATE INDEX hapax_running ON hapax_executions (queue_no, concurrency_key) WHERE status = 1;
-- Of claims that may be said again: a bit marks their secrets, see core/claim_secret.h.
CREATE INDEX hapax_claims ON hapax_executions (lease_secret) WHERE status = 1 AND lease_secret >= x'80';
CREATE INDEX hapax_due ON hapax_executions (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX hapax_closed ON hapax_executions (queue_no, kind, finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX hapax_keys ON hapax_executions (key_hash, queue_no) WHERE key_hash IS NOT NULL;
CREATE INDEX hapax_steps ON hapax_executions (parent) WHERE parent IS NOT NULL;
-- Lists begin with the queue, which says the namespace: a list never walks another namespace's rows.
CREATE INDEX hapax_in_queue ON hapax_executions (queue_no, id);
-- What operators look for among much that is well.
CREATE INDEX hapax_unsuccessful ON hapax_executions (queue_no, id) WHERE status = 4 OR status = 5 OR status = 6;

-- Apart from its execution, so that claiming and finishing do not rewrite it.
CREATE TABLE hapax_large_inputs (
  seq INTEGER PRIMARY KEY,
  input TEXT NOT NULL
);

CREATE TABLE hapax_failed_attempts (
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  error_type TEXT NOT NULL,
  error_message TEXT NOT NULL,
  error_stack TEXT,
  error_details TEXT,
  secret BLOB NOT NULL,
  reported INTEGER NOT NULL,
  sum INTEGER NOT NULL,  -- CRC-32C, as of everything below that has one
  PRIMARY KEY (seq, ordinal)
) WITHOUT ROWID;

-- The ledger. As long as the owner is stored, everything else about the entry is read there; then in hapax_tombstones.
CREATE TABLE hapax_identities (
  hash BLOB PRIMARY KEY,
  owner INTEGER,       -- hapax_executions.seq; NULL: see hapax_tombstones
  expires_at INTEGER   -- by a TTL
) WITHOUT ROWID;

CREATE TABLE hapax_tombstones (
  hash BLOB PRIMARY KEY,
  expires_at INTEGER NOT NULL,
  queue_no INTEGER NOT NULL,
  owner BLOB NOT NULL,
  input_hash BLOB NOT NULL,
  identity_strategy INTEGER NOT NULL,
  identity_scope_tag INTEGER NOT NULL,
  identity_scope_name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  type TEXT NOT NULL,
  idempotency_key TEXT,
  status INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX hapax_tombstone_ends ON hapax_tombstones (expires_at);

-- The state of each queue's rate limit, with the limit that it was counted under.
CREATE TABLE hapax_rates (
  queue_no INTEGER PRIMARY KEY,
  full_at_ns INTEGER NOT NULL,
  count INTEGER NOT NULL,
  per_ms INTEGER NOT NULL,
  burst INTEGER NOT NULL
);

-- The request keys of control operations, with their outcomes.
CREATE TABLE hapax_requests (
  name_space TEXT NOT NULL,
  request_key TEXT NOT NULL,
  action INTEGER NOT NULL,
  target BLOB NOT NULL,
  outcome INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  status INTEGER NOT NULL,
  other BLOB,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  workflow_id TEXT,
  parameters BLOB,
  execution BLOB,
  steps INTEGER NOT NULL,
  PRIMARY KEY (name_space, request_key)
) WITHOUT ROWID;
CREATE INDEX hapax_request_ends ON hapax_requests (expires_at);

CREATE TABLE hapax_settings (
  name_space TEXT NOT NULL,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  document TEXT NOT NULL,
  PRIMARY KEY (name_space, kind, name)
) WITHOUT ROWID;

-- Workers that announced themselves.
CREATE TABLE hapax_workers (
  name_space TEXT NOT NULL,
  name TEXT NOT NULL,
  last_seen_at INTEGER NOT NULL,
  tasks INTEGER NOT NULL,      -- what it claims: these,
  workflows INTEGER NOT NULL,  -- and these
  queues TEXT NOT NULL,        -- with a newline before and after each
  types TEXT NOT NULL,         -- the same; empty: any
  sdk TEXT NOT NULL,
  version TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  PRIMARY KEY (name_space, name)
) WITHOUT ROWID;
CREATE INDEX hapax_workers_seen ON hapax_workers (name_space, last_seen_at);

-- What Store::check() writes to. `filling` is as large as what a submission may take, so that a check fails where that
-- would.
CREATE TABLE hapax_checks (
  only_one INTEGER PRIMARY KEY,
  checked_at INTEGER NOT NULL,
  filling BLOB
);

-- What a workflow has beyond a task; `seq` is its execution's.
CREATE TABLE hapax_runs (
  seq INTEGER PRIMARY KEY,
  events INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  stuck INTEGER NOT NULL,
  wake_at INTEGER,
  continued_as BLOB,
  committed BLOB  -- its latest turns, so that one that is sent again is recognised
);

CREATE TABLE hapax_events (
  seq INTEGER NOT NULL,
  no INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  step INTEGER NOT NULL,
  name TEXT NOT NULL,
  key TEXT,
  execution BLOB,
  until INTEGER,
  status INTEGER,
  value TEXT,
  error_type TEXT,
  error_message TEXT,
  error_stack TEXT,
  error_details TEXT,
  sum INTEGER NOT NULL,
  PRIMARY KEY (seq, no)
) WITHOUT ROWID;

-- Steps whose outcome does not come from a task or child of their own.
CREATE TABLE hapax_waits (
  seq INTEGER NOT NULL,
  step INTEGER NOT NULL,
  signal TEXT NOT NULL,
  until INTEGER,
  awaits BLOB,  -- the id of an execution that was there before
  PRIMARY KEY (seq, step)
) WITHOUT ROWID;
CREATE INDEX hapax_awaited ON hapax_waits (awaits) WHERE awaits IS NOT NULL;

-- Signals that no step has waited for yet.
CREATE TABLE hapax_signals (
  seq INTEGER NOT NULL,
  no INTEGER NOT NULL,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT,
  sum INTEGER NOT NULL,
  PRIMARY KEY (seq, no)
) WITHOUT ROWID;

-- Reports that closed executions which are deleted by now: the same report again gets the same answer. Kept some
-- minutes.
CREATE TABLE hapax_closing_reports (
  id BLOB PRIMARY KEY,   -- of the execution
  expires_at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  secret BLOB NOT NULL,
  said BLOB NOT NULL,    -- SHA-256 of the result or the error
  status INTEGER NOT NULL,
  queue_no INTEGER NOT NULL,
  had_concurrency_key INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX hapax_closing_report_ends ON hapax_closing_reports (expires_at);

CREATE TABLE hapax_activities (
  name_space TEXT NOT NULL,
  id TEXT NOT NULL,
  by_event INTEGER NOT NULL,
  next_due INTEGER,       -- when its schedule is looked at; NULL: never
  revision INTEGER NOT NULL,
  document TEXT NOT NULL,
  UNIQUE (name_space, id)
);
CREATE INDEX hapax_due_activities ON hapax_activities (next_due, name_space, id) WHERE next_due IS NOT NULL;
CREATE INDEX hapax_event_activities ON hapax_activities (name_space, id) WHERE by_event = 1;

-- The run ledger: what became of each firing. The rows outlive their activity.
CREATE TABLE hapax_activity_runs (
  name_space TEXT NOT NULL,
  activity TEXT NOT NULL,
  occurrence TEXT NOT NULL,
  cause INTEGER NOT NULL,
  at INTEGER NOT NULL,
  disposition INTEGER NOT NULL,
  workflow_id TEXT NOT NULL,
  window_from INTEGER,
  window_to INTEGER,
  window_missed INTEGER,
  why TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  event_id TEXT,      -- of a run that an event started, as the next two
  event_source TEXT,
  event_hash BLOB,    -- SHA-256 of type, source, subject and data
  PRIMARY KEY (name_space, activity, occurrence)
) WITHOUT ROWID;
CREATE INDEX hapax_activity_runs_by_time ON hapax_activity_runs (name_space, activity, at, occurrence);
CREATE INDEX hapax_activity_runs_by_age ON hapax_activity_runs (recorded_at, name_space, activity, occurrence);
)sql";

struct Migration {
  std::int64_t version;
  std::string sql;
};

const std::array<Migration, 1>& migrations() {
  static const std::array<Migration, 1> all{{{1, executions_table() + kTables}}};
  return all;
}

void refuse_newer(Connection& connection, std::int64_t version) {
  if (version <= newest_schema_version()) return;
  throw Failure(Failure::Code::misuse,
                fmt::format("{} has schema {}, and this program knows only up to {}: use a newer hapax",
                            connection.path(), version, newest_schema_version()));
}

// Several processes that open a new file at once each try to switch it to WAL; SQLite does not wait for that lock by
// itself.
void use_wal(Connection& connection) {
  for (int attempt = 0;; ++attempt) {
    try {
      Statement statement(connection, "PRAGMA journal_mode = WAL");
      Run run(statement);
      run.next();
      if (run.text(0) == "wal" || run.text(0) == "memory") return;
      throw Failure(Failure::Code::misuse,
                    fmt::format("{} cannot use a write-ahead log: put it on a local disk", connection.path()));
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::unavailable || connection.broken() || attempt >= 1000) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

}  // namespace

std::int64_t newest_schema_version() { return migrations().back().version; }

std::int64_t schema_version(Connection& connection) {
  constexpr const char* kIsThere = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'hapax_store'";
  return connection.read_integer(kIsThere) == 0 ? 0 : connection.read_integer("SELECT version FROM hapax_store");
}

void migrate(Connection& connection) {
  Transaction transaction(connection);
  const std::int64_t version = schema_version(connection);
  refuse_newer(connection, version);
  for (const Migration& migration : migrations()) {
    if (migration.version <= version) continue;
    connection.exec(migration.sql.c_str());
    connection.exec(fmt::format("UPDATE hapax_store SET version = {}", migration.version).c_str());
  }
  transaction.commit();
}

void prepare_schema(Connection& connection, bool migrate_older) {
  if (schema_version(connection) == 0) {
    use_wal(connection);
    migrate(connection);
  }
  if (migrate_older) migrate(connection);
  const std::int64_t version = schema_version(connection);
  refuse_newer(connection, version);
  if (version < newest_schema_version()) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("{} has the older schema {}: run `hapax migrate` to bring it to {}", connection.path(),
                              version, newest_schema_version()));
  }
  use_wal(connection);
}

}  // namespace hapax::sqlite
