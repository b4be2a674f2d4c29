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

constexpr std::array<Migration, 1> kMigrations{{{1, kTasks}}};

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

// Several who open a new file at once each try to switch it to WAL; SQLite does not wait for that lock by itself.
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

void prepare_schema(Connection& connection) {
  if (is_empty(connection)) {
    use_wal(connection);
    migrate(connection);
  }
  check_is_ours(connection);
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
