#include "store/sqlite/schema.h"

#include <fmt/format.h>

#include <array>
#include <thread>

namespace hapax::sqlite {

namespace {

struct Migration {
  std::int64_t version;
  const char* sql;
};

// Times are milliseconds since the epoch, ids and hashes their raw bytes, enumerations their numbers.
constexpr const char* kTasks = R"sql(
-- A queue's number stands for its name in every row and index below.
CREATE TABLE queues (
  queue_no INTEGER PRIMARY KEY,
  name_space TEXT NOT NULL,
  queue TEXT NOT NULL,
  UNIQUE (name_space, queue)
);

-- What finishing reads comes first, what only readers want comes last.
CREATE TABLE executions (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  queue_no INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  status INTEGER NOT NULL,
  parked INTEGER NOT NULL DEFAULT 0,  -- pending, but its concurrency key has no free slot
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  due_at INTEGER,                     -- when sweeping has something to do here
  attempt INTEGER NOT NULL,
  attempt_limit INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  retry_initial_ms INTEGER NOT NULL,
  retry_factor REAL NOT NULL,
  retry_max_ms INTEGER NOT NULL,
  timeout_ms INTEGER,
  deadline_at INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  cancel_requested_at INTEGER,
  cancel_by INTEGER,
  lease_secret BLOB,
  lease_expires_at INTEGER,
  attempt_ends_by INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,  -- rows in failed_attempts
  worker TEXT NOT NULL,
  concurrency_key TEXT,
  error_type TEXT,
  error_message TEXT,
  result TEXT,
  identity_hash BLOB,
  parent BLOB,
  strategy INTEGER,
  scope_tag INTEGER,
  scope_name TEXT,
  type TEXT NOT NULL,
  key_hash INTEGER,                     -- of the idempotency key: a small index instead of a large one
  idempotency_key TEXT,
  input_hash BLOB NOT NULL,
  input TEXT                            -- NULL: in large_inputs
);

CREATE UNIQUE INDEX execution_ids ON executions (id);
CREATE INDEX ready ON executions (queue_no, priority DESC, run_at, id) WHERE status = 0 AND parked = 0;
CREATE INDEX parked ON executions (queue_no, concurrency_key, priority DESC, run_at, id) WHERE parked = 1;
CREATE INDEX running ON executions (queue_no, concurrency_key) WHERE status = 1;
CREATE INDEX due ON executions (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX closed ON executions (queue_no, kind, finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX keys ON executions (key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX steps ON executions (parent) WHERE parent IS NOT NULL;

-- Apart from its execution, so that claiming and finishing do not rewrite it.
CREATE TABLE large_inputs (
  seq INTEGER PRIMARY KEY,
  input TEXT NOT NULL
);

CREATE TABLE failed_attempts (
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  error_type TEXT NOT NULL,
  error_message TEXT NOT NULL,
  secret BLOB NOT NULL,
  reported INTEGER NOT NULL,
  PRIMARY KEY (seq, ordinal)
) WITHOUT ROWID;

-- The ledger. As long as the owner is stored, everything else about the entry is read there; then in tombstones.
CREATE TABLE identities (
  hash BLOB PRIMARY KEY,
  owner INTEGER,       -- executions.seq; NULL: see tombstones
  expires_at INTEGER   -- by a TTL
) WITHOUT ROWID;

CREATE TABLE tombstones (
  hash BLOB PRIMARY KEY,
  expires_at INTEGER NOT NULL,
  queue_no INTEGER NOT NULL,
  owner BLOB NOT NULL,
  input_hash BLOB NOT NULL,
  strategy INTEGER NOT NULL,
  scope_tag INTEGER NOT NULL,
  scope_name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  type TEXT NOT NULL,
  idempotency_key TEXT,
  status INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tombstone_ends ON tombstones (expires_at);

CREATE TABLE rates (
  queue_no INTEGER PRIMARY KEY,
  full_at_ns INTEGER NOT NULL
);

-- The request keys of control operations, with their outcomes.
CREATE TABLE requests (
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
  PRIMARY KEY (name_space, request_key)
) WITHOUT ROWID;
CREATE INDEX request_ends ON requests (expires_at);

CREATE TABLE settings (
  name_space TEXT NOT NULL,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  document TEXT NOT NULL,
  PRIMARY KEY (name_space, kind, name)
) WITHOUT ROWID;

-- What Store::check() writes to.
CREATE TABLE checks (
  only_one INTEGER PRIMARY KEY,
  checked_at INTEGER NOT NULL
);
)sql";

// Workflows: turns wait in queues of their own, steps know their run. The columns that finishing reads stay in front.
constexpr const char* kWorkflows = R"sql(
DROP INDEX execution_ids;
DROP INDEX ready;
DROP INDEX parked;
DROP INDEX running;
DROP INDEX due;
DROP INDEX closed;
DROP INDEX keys;
DROP INDEX steps;
ALTER TABLE executions RENAME TO executions_1;
ALTER TABLE queues RENAME TO queues_1;

CREATE TABLE queues (
  queue_no INTEGER PRIMARY KEY,
  name_space TEXT NOT NULL,
  queue TEXT NOT NULL,
  kind INTEGER NOT NULL,  -- of what waits here: the turns of workflows have a number apart from the tasks
  UNIQUE (name_space, queue, kind)
);
INSERT INTO queues SELECT queue_no, name_space, queue, 0 FROM queues_1;
DROP TABLE queues_1;

CREATE TABLE executions (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  queue_no INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  status INTEGER NOT NULL,
  parked INTEGER NOT NULL DEFAULT 0,  -- pending, but its concurrency key has no free slot
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  due_at INTEGER,                     -- when sweeping has something to do here
  attempt INTEGER NOT NULL,
  attempt_limit INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  retry_initial_ms INTEGER NOT NULL,
  retry_factor REAL NOT NULL,
  retry_max_ms INTEGER NOT NULL,
  timeout_ms INTEGER,
  deadline_at INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  cancel_requested_at INTEGER,
  cancel_by INTEGER,
  lease_secret BLOB,
  lease_expires_at INTEGER,
  attempt_ends_by INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,  -- rows in failed_attempts
  worker TEXT NOT NULL,
  concurrency_key TEXT,
  error_type TEXT,
  error_message TEXT,
  result TEXT,
  identity_hash BLOB,
  parent BLOB,                          -- the id of the run that this is a step of
  step INTEGER NOT NULL DEFAULT 0,
  awaited INTEGER NOT NULL DEFAULT 0,   -- there is a row in waits that waits for it
  strategy INTEGER,
  scope_tag INTEGER,
  scope_name TEXT,
  type TEXT NOT NULL,
  key_hash INTEGER,                     -- of the idempotency key: a small index instead of a large one
  idempotency_key TEXT,
  parent_workflow_id TEXT,
  input_hash BLOB NOT NULL,
  input TEXT                            -- NULL: in large_inputs
);
INSERT INTO executions SELECT
  seq, id, queue_no, kind, status, parked, priority, run_at, due_at, attempt, attempt_limit, max_attempts,
  retry_initial_ms, retry_factor, retry_max_ms, timeout_ms, deadline_at, created_at, started_at, finished_at,
  cancel_requested_at, cancel_by, lease_secret, lease_expires_at, attempt_ends_by, failures, worker, concurrency_key,
  error_type, error_message, result, identity_hash, parent, 0, 0, strategy, scope_tag, scope_name, type, key_hash,
  idempotency_key, NULL, input_hash, input
FROM executions_1;
DROP TABLE executions_1;

CREATE UNIQUE INDEX execution_ids ON executions (id);
CREATE INDEX ready ON executions (queue_no, priority DESC, run_at, id) WHERE status = 0 AND parked = 0;
CREATE INDEX parked ON executions (queue_no, concurrency_key, priority DESC, run_at, id) WHERE parked = 1;
CREATE INDEX running ON executions (queue_no, concurrency_key) WHERE status = 1;
CREATE INDEX due ON executions (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX closed ON executions (queue_no, kind, finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX keys ON executions (key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX steps ON executions (parent) WHERE parent IS NOT NULL;

-- What a workflow has beyond a task; `seq` is its execution's.
CREATE TABLE runs (
  seq INTEGER PRIMARY KEY,
  events INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  stuck INTEGER NOT NULL,
  wake_at INTEGER,
  continued_as BLOB
);

CREATE TABLE events (
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
  PRIMARY KEY (seq, no)
) WITHOUT ROWID;

-- Steps whose outcome does not come from a task or child of their own.
CREATE TABLE waits (
  seq INTEGER NOT NULL,
  step INTEGER NOT NULL,
  signal TEXT NOT NULL,
  until INTEGER,
  awaits BLOB,  -- the id of an execution that was there before
  PRIMARY KEY (seq, step)
) WITHOUT ROWID;
CREATE INDEX awaited ON waits (awaits) WHERE awaits IS NOT NULL;

-- Signals that nobody has waited for yet.
CREATE TABLE signals (
  seq INTEGER NOT NULL,
  no INTEGER NOT NULL,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT,
  PRIMARY KEY (seq, no)
) WITHOUT ROWID;

ALTER TABLE requests ADD COLUMN workflow_id TEXT;
ALTER TABLE requests ADD COLUMN parameters BLOB;
ALTER TABLE requests ADD COLUMN execution BLOB;
ALTER TABLE requests ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
)sql";

constexpr const char* kReports = R"sql(
-- Reports that closed executions which are deleted by now: the same report again is answered as it was. Kept some minutes.
CREATE TABLE closing_reports (
  id BLOB PRIMARY KEY,   -- of the execution
  expires_at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  secret BLOB NOT NULL,
  said BLOB NOT NULL,    -- SHA-256 of the result or the error
  status INTEGER NOT NULL,
  queue_no INTEGER NOT NULL,
  had_concurrency_key INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX closing_report_ends ON closing_reports (expires_at);

-- What operators look for among much that is well.
CREATE INDEX unsuccessful ON executions (id) WHERE status = 4 OR status = 5 OR status = 6;
)sql";

constexpr const char* kActivities = R"sql(
CREATE TABLE activities (
  name_space TEXT NOT NULL,
  id TEXT NOT NULL,
  by_event INTEGER NOT NULL,
  next_due INTEGER,       -- when its schedule is looked at; NULL: never
  revision INTEGER NOT NULL,
  document TEXT NOT NULL,
  UNIQUE (name_space, id)
);
CREATE INDEX due_activities ON activities (next_due, name_space, id) WHERE next_due IS NOT NULL;
CREATE INDEX event_activities ON activities (name_space, id) WHERE by_event = 1;

-- The run ledger: what became of each firing. The rows outlive their activity.
CREATE TABLE activity_runs (
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
  PRIMARY KEY (name_space, activity, occurrence)
) WITHOUT ROWID;
CREATE INDEX activity_runs_by_time ON activity_runs (name_space, activity, at, occurrence);
CREATE INDEX activity_runs_by_age ON activity_runs (recorded_at, name_space, activity, occurrence);
)sql";

constexpr const char* kStoreIdentity = R"sql(
-- Tells this data from any other that may take its place.
CREATE TABLE store (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  identity BLOB NOT NULL
);
INSERT INTO store (only_one, identity) VALUES (1, randomblob(16));
)sql";

// Lists begin with the queue, which says the namespace: what others have is never walked through.
constexpr const char* kListsWithinNamespaces = R"sql(
CREATE INDEX in_queue ON executions (queue_no, id);
DROP INDEX unsuccessful;
CREATE INDEX unsuccessful ON executions (queue_no, id) WHERE status = 4 OR status = 5 OR status = 6;
DROP INDEX keys;
CREATE INDEX keys ON executions (key_hash, queue_no) WHERE key_hash IS NOT NULL;
)sql";

constexpr const char* kChecksums = R"sql(
-- CRC-32C of what is stored (core/checksum.h); NULL: written before there were any.
ALTER TABLE executions ADD COLUMN state_sum INTEGER;
ALTER TABLE executions ADD COLUMN fact_sum INTEGER;
ALTER TABLE failed_attempts ADD COLUMN sum INTEGER;
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE signals ADD COLUMN sum INTEGER;
)sql";

// The limit under which full_at_ns was counted. 0: not known.
constexpr const char* kRates = R"sql(
ALTER TABLE rates ADD COLUMN count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rates ADD COLUMN per_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rates ADD COLUMN burst INTEGER NOT NULL DEFAULT 0;
)sql";

// A turn that is sent again is recognised by what its run remembers of the latest ones.
constexpr const char* kCommittedTurns = R"sql(
ALTER TABLE runs ADD COLUMN committed BLOB;
)sql";

constexpr const char* kCounted = R"sql(
-- What run_at and the lease were counted with, for a clock that is set back. NULL: run_at is the caller's own.
ALTER TABLE executions ADD COLUMN run_in_ms INTEGER;
ALTER TABLE executions ADD COLUMN lease_ms INTEGER;
-- As large as what a submission may take, so that a check fails where that would.
ALTER TABLE checks ADD COLUMN filling BLOB;
)sql";

constexpr const char* kEventsOfRuns = R"sql(
-- Of a run that an event started. NULL in rows of before.
ALTER TABLE activity_runs ADD COLUMN event_id TEXT;
ALTER TABLE activity_runs ADD COLUMN event_source TEXT;
ALTER TABLE activity_runs ADD COLUMN event_hash BLOB;  -- SHA-256 of type, source, subject and data
)sql";

// So that a submission which comes again under its id is told again whom it superseded.
constexpr const char* kSuperseded = "ALTER TABLE executions ADD COLUMN superseded BLOB;";

constexpr std::array<Migration, 12> kMigrations{{{1, kTasks},
                                                 {2, kWorkflows},
                                                 {3, kReports},
                                                 {4, kActivities},
                                                 {5, kStoreIdentity},
                                                 {6, kListsWithinNamespaces},
                                                 {7, kChecksums},
                                                 {8, kRates},
                                                 {9, kCommittedTurns},
                                                 {10, kCounted},
                                                 {11, kEventsOfRuns},
                                                 {12, kSuperseded}}};

bool is_empty(Connection& connection) {
  return connection.read_integer("SELECT count(*) FROM sqlite_schema") == 0 &&
         connection.read_integer("PRAGMA user_version") == 0;
}

void check_is_ours(Connection& connection) {
  if (connection.read_integer("PRAGMA application_id") != kApplicationId) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("{} is a SQLite database, but none of Hapax's: name another file", connection.path()));
  }
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

std::int64_t newest_schema_version() { return kMigrations.back().version; }

void migrate(Connection& connection) {
  Transaction transaction(connection);
  if (!is_empty(connection)) check_is_ours(connection);
  const std::int64_t version = connection.read_integer("PRAGMA user_version");
  refuse_newer(connection, version);
  for (const Migration& migration : kMigrations) {
    if (migration.version <= version) continue;
    connection.exec(migration.sql);
    connection.exec(fmt::format("PRAGMA user_version = {}", migration.version).c_str());
  }
  connection.exec(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
  transaction.commit();
}

void prepare_schema(Connection& connection, bool migrate_older) {
  if (is_empty(connection)) {
    use_wal(connection);
    migrate(connection);
  }
  check_is_ours(connection);
  if (migrate_older) migrate(connection);
  const std::int64_t version = connection.read_integer("PRAGMA user_version");
  refuse_newer(connection, version);
  if (version < newest_schema_version()) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("{} has the older schema {}: run `hapax migrate` to bring it to {}", connection.path(),
                              version, newest_schema_version()));
  }
  use_wal(connection);
}

}  // namespace hapax::sqlite
