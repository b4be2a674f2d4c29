#include "store/postgres/tables/schema.h"

#include <fmt/format.h>

#include <array>

#include "store/postgres/tables/rows.h"

namespace hapax::postgres {

namespace {

// Times are milliseconds since the epoch, enumerations their numbers, texts their bytes: what is stored comes back
// exactly, whatever the database's encoding and collation are.
constexpr const char* kTables = R"sql(
-- A queue's number stands for its name in every row and index below. Its row is the lock of its limits.
CREATE TABLE queues (
  queue_no int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name_space bytea NOT NULL,
  queue bytea NOT NULL,
  kind int2 NOT NULL,                  -- of what waits here: the turns of workflows have a number apart from the tasks
  full_at_ns int8 NOT NULL DEFAULT 0,  -- of the rate limit, and the limit that it was counted under; 0: none yet
  rate_count int8 NOT NULL DEFAULT 0,
  rate_per_ms int8 NOT NULL DEFAULT 0,
  rate_burst int8 NOT NULL DEFAULT 0,
  UNIQUE (name_space, queue, kind)
);

-- What never changes, written once.
CREATE TABLE executions (
  {facts},
  key_shelf int4 NOT NULL DEFAULT 0,
  done_secret bytea,  -- of its lease. NULL: it was not done within its turn, and its state is in open or closed
  done_by bytea,
  done_result bytea,
  done_event int8,    -- that asked for it; the next one tells what came of it. NULL: what there is of them is in events
  PRIMARY KEY (id)
);
-- Idempotency keys come in no order, so each would be written at another place of an index that soon outgrows the
-- server's memory. They are kept on shelves, as many on each as fit there: all are written to the last one, and a look
-- for a key looks on each.
CREATE SEQUENCE keyed;
CREATE INDEX keys ON executions (key_shelf, key_hash, queue_no) WHERE key_hash IS NOT NULL;
CREATE INDEX steps ON executions (parent, id) WHERE parent IS NOT NULL;
-- Lists begin with the queue, which says the namespace: a list never walks another namespace's rows. New rows go to the
-- end of their queue, so this index is written to in few places.
CREATE INDEX in_queue ON executions (queue_no, id);

-- What changes, while an execution is open: small, and all that claiming looks at.
CREATE TABLE open (
  {places},
  parked bool NOT NULL DEFAULT false,  -- pending, but its concurrency key has no free slot
  {states},
  PRIMARY KEY (id)
);
ALTER TABLE open ALTER COLUMN awaited SET DEFAULT false;
CREATE INDEX ready ON open (queue_no, type, priority DESC, run_at, id) WHERE status = 0 AND NOT parked;
CREATE INDEX parked ON open (queue_no, concurrency_key, type, priority DESC, run_at, id) WHERE parked;
-- A claim writes every index that a running row is in, so there is one: for the end of its lease, and to count what
-- runs in a queue with a limit. Those with a concurrency key are in another, to be counted by it.
CREATE INDEX running ON open (due_at, id, queue_no) WHERE status = 1;
-- Of claims that may be said again: a bit marks their secrets, see core/claim_secret.h.
CREATE INDEX claims ON open (lease_secret) WHERE status = 1 AND get_byte(lease_secret, 0) > 127;
CREATE INDEX running_keys ON open (queue_no, concurrency_key) WHERE status = 1 AND concurrency_key IS NOT NULL;
CREATE INDEX due ON open (due_at, id) WHERE due_at IS NOT NULL AND status <> 1;
CREATE INDEX suspended ON open (queue_no, id) WHERE status = 2;
-- Its rows live for seconds: what they leave behind is to be cleared away as soon.
ALTER TABLE open SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
                      autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);

-- The same of those that are closed, written once.
CREATE TABLE closed (LIKE open INCLUDING DEFAULTS, PRIMARY KEY (id));
-- A step stays as long as the run that has it: has_parent says that there is one.
CREATE INDEX closed_ends ON closed (queue_no, finished_at, id) WHERE NOT has_parent;
-- What operators look for among much that is well.
CREATE INDEX unsuccessful ON closed (queue_no, id) WHERE status > 3;

-- The ledger. As long as the owner is stored, everything else about the entry is read there; then in tombstones.
CREATE TABLE identities (
  hash uuid PRIMARY KEY,  -- the first half of it, whose index is half as large
  owner uuid NOT NULL,
  expires_at int8      -- by a TTL
);

CREATE TABLE tombstones (
  hash bytea PRIMARY KEY,
  expires_at int8 NOT NULL,
  queue_no int4 NOT NULL,
  owner uuid NOT NULL,
  input_hash bytea NOT NULL,
  identity_strategy int2 NOT NULL,
  identity_scope_tag int2 NOT NULL,
  identity_scope_name bytea NOT NULL,
  kind int2 NOT NULL,
  type bytea NOT NULL,
  idempotency_key bytea,
  status int2 NOT NULL,
  created_at int8 NOT NULL,
  finished_at int8 NOT NULL
);
CREATE INDEX tombstone_ends ON tombstones (expires_at, hash);

-- The request keys of control operations, with their outcomes. One that has no life left is free.
CREATE TABLE requests (
  name_space bytea NOT NULL,
  request_key bytea NOT NULL,
  action int2 NOT NULL,
  target uuid NOT NULL,
  outcome int2 NOT NULL,
  changed bool NOT NULL,
  status int2 NOT NULL,
  other uuid,
  workflow_id bytea,
  parameters bytea NOT NULL,
  execution uuid,
  steps int4 NOT NULL,
  expires_at int8 NOT NULL,
  PRIMARY KEY (name_space, request_key)
);
CREATE INDEX request_ends ON requests (expires_at);

-- Reports that closed executions which are deleted by now: the same report again is answered as it was. Kept some
-- minutes.
CREATE TABLE closing_reports (
  id uuid PRIMARY KEY,   -- of the execution
  expires_at int8 NOT NULL,
  attempt int4 NOT NULL,
  secret bytea NOT NULL,
  said bytea NOT NULL,   -- SHA-256 of the result or the error
  status int2 NOT NULL,
  queue_no int4 NOT NULL,
  had_concurrency_key bool NOT NULL
);
CREATE INDEX closing_report_ends ON closing_reports (expires_at);

-- The histories of workflows.
CREATE TABLE events (
  run uuid NOT NULL,
  {events},
  PRIMARY KEY (run, no)
);

-- Steps whose outcome does not come from a task or child of their own.
CREATE TABLE waits (
  run uuid NOT NULL,
  step int4 NOT NULL,
  signal bytea NOT NULL,
  until int8,
  awaits uuid,  -- an execution that was there before
  PRIMARY KEY (run, step)
);
CREATE INDEX awaited ON waits (awaits, run, step) WHERE awaits IS NOT NULL;

-- Signals that nobody has waited for yet.
CREATE TABLE signals (
  run uuid NOT NULL,
  no int8 NOT NULL,
  at int8 NOT NULL,
  name bytea NOT NULL,
  value bytea,
  PRIMARY KEY (run, no)
);

CREATE TABLE settings (
  name_space bytea NOT NULL,
  kind int2 NOT NULL,
  name bytea NOT NULL,
  document bytea NOT NULL,
  PRIMARY KEY (name_space, kind, name)
);

-- Workers that announced themselves.
CREATE TABLE workers (
  name_space bytea NOT NULL,
  name bytea NOT NULL,
  last_seen_at int8 NOT NULL,
  tasks bool NOT NULL,      -- what it claims: these,
  workflows bool NOT NULL,  -- and these
  queues bytea NOT NULL,    -- with a newline before and after each
  types bytea NOT NULL,     -- the same; empty: any
  sdk bytea NOT NULL,
  version bytea NOT NULL,
  host bytea NOT NULL,
  pid int8 NOT NULL,
  PRIMARY KEY (name_space, name)
);
CREATE INDEX workers_seen ON workers (name_space, last_seen_at);
-- Each row is rewritten several times a minute.
ALTER TABLE workers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- What Store::check() writes to.
CREATE TABLE checks (
  only_one int4 PRIMARY KEY,
  checked_at int8 NOT NULL
);

CREATE TABLE activities (
  name_space bytea NOT NULL,
  id bytea NOT NULL,
  document bytea NOT NULL,
  by_event bool NOT NULL,
  next_due int8,          -- when its schedule is looked at; NULL: never
  revision int8 NOT NULL,
  PRIMARY KEY (name_space, id)
);
CREATE INDEX due_activities ON activities (next_due, name_space, id) WHERE next_due IS NOT NULL;
CREATE INDEX event_activities ON activities (name_space, id) WHERE by_event;
-- Every firing moves a row to the end of that index: what it leaves behind is to be cleared away soon.
ALTER TABLE activities SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The run ledger: what became of each firing. The rows outlive their activity.
CREATE TABLE activity_runs (
  firing bytea PRIMARY KEY,  -- SHA-256 of namespace, activity and occurrence: no other index can be taken for this one
  name_space bytea NOT NULL,
  activity bytea NOT NULL,
  occurrence bytea NOT NULL,
  cause int2 NOT NULL,
  at int8 NOT NULL,
  disposition int2 NOT NULL,
  workflow_id bytea NOT NULL,
  window_from int8,
  window_to int8,
  window_missed int8,
  why bytea NOT NULL,
  recorded_at int8 NOT NULL,
  event_id bytea,      -- of a run that an event started, as the next two
  event_source bytea,
  event_hash bytea     -- SHA-256 of type, source, subject and data
);
CREATE INDEX activity_runs_by_time ON activity_runs (name_space, activity, at, occurrence);
CREATE INDEX activity_runs_by_age ON activity_runs (recorded_at);

-- Drawn when the store is created. A dump has the definition only, and its restore ends with drawing it again, after
-- everything else is there: so a restored store is not taken for the one before, nor one that is being restored for a
-- whole one.
CREATE MATERIALIZED VIEW store_identity AS SELECT gen_random_uuid() AS id;
)sql";

// The tables, and the types of the rows of batches. Both follow core/fields.h until the first release, which freezes
// them: from then on a change is a migration of its own, with types of new names, so that servers that are running can
// go on.
std::string first_schema() {
  std::string sql =
      fmt::format(fmt::runtime(kTables), fmt::arg("facts", definitions(fact_columns())),
                  fmt::arg("places", definitions(kPlaceColumns)), fmt::arg("states", definitions(state_columns())),
                  fmt::arg("events", definitions(event_columns())));
  for (const RowType* type : {&fact_rows(), &submission_rows(), &started_submission_rows(), &state_rows(),
                              &start_rows(), &event_rows(), &turn_rows(), &done_step_rows()}) {
    sql += fmt::format("CREATE TYPE {} AS ({});\n", type->name, definitions(type->columns, false));
  }
  return sql;
}

struct Migration {
  std::int64_t version;
  std::string sql;
};

const std::array<Migration, 1>& migrations() {
  static const std::array<Migration, 1> all{{{1, first_schema()}}};
  return all;
}

// 'hapax' in ASCII: what the migrations of any schema lock.
constexpr std::int64_t kMigrationLock = 0x6861706178;

std::string identifier(const std::string& schema) {
  std::string out = "\"";
  for (const char c : schema) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// 0: there is no schema of that name, or it is empty.
std::int64_t version_of(Connection& connection, const std::string& schema) {
  // Reads the tables of the catalogue: what to_regclass() knows may be older than the lock that was waited for. One
  // query, because another process may create all of them between two.
  const std::string known =
      connection.run_script(fmt::format("SELECT coalesce(max(tablename), '') FROM pg_tables WHERE schemaname = '{}'"
                                        " AND tablename IN ('executions', 'schema_versions')",
                                        schema));
  if (known == "schema_versions") {
    return std::stoll(connection.run_script(
        fmt::format("SELECT coalesce(max(version), 0) FROM {}.schema_versions", identifier(schema))));
  }
  if (known.empty()) return 0;
  throw Failure(
      Failure::Code::misuse,
      fmt::format("the schema {} has tables of somebody else's: name another one with ?hapax_schema=NAME", schema));
}

void refuse_newer(const std::string& schema, std::int64_t version) {
  if (version <= newest_schema_version()) return;
  throw Failure(Failure::Code::misuse,
                fmt::format("the schema {} has version {}, and this program knows only up to {}: use a"
                            " newer hapax",
                            schema, version, newest_schema_version()));
}

void check_encoding(Connection& connection) {
  const std::string encoding = connection.run_script("SHOW server_encoding");
  if (encoding == "UTF8" || encoding == "SQL_ASCII") return;
  throw Failure(Failure::Code::misuse, "the database's encoding is " + encoding + ": create it with ENCODING 'UTF8'");
}

}  // namespace

std::int64_t newest_schema_version() { return migrations().back().version; }

void migrate(Connection& connection, const std::string& schema) {
  connection.run_script(fmt::format("BEGIN; SELECT pg_advisory_xact_lock({})", kMigrationLock));
  connection.run_script(fmt::format("SET LOCAL search_path TO {}", identifier(schema)));
  const std::int64_t version = version_of(connection, schema);
  refuse_newer(schema, version);
  const std::string exists = fmt::format("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = '{}')", schema);
  if (connection.run_script(exists) != "t") connection.run_script("CREATE SCHEMA " + identifier(schema));
  if (version == 0) {
    connection.run_script("CREATE TABLE schema_versions (version int8 PRIMARY KEY, migrated_at timestamptz NOT NULL)");
  }
  for (const Migration& migration : migrations()) {
    if (migration.version <= version) continue;
    connection.run_script(migration.sql);
    connection.run_script(fmt::format("INSERT INTO schema_versions VALUES ({}, now())", migration.version));
  }
  connection.run_script("COMMIT");
}

void refuse_pooler(Connection& connection, const ConnectionOptions& options) {
  const std::string pid = connection.run_script("SELECT pg_backend_pid()");
  if (options.pooled || pid == std::to_string(PQbackendPID(connection.handle()))) return;
  // A pooler made up the other number. One that keeps a server connection for each client does no harm.
  const std::string mark = pid + " " + connection.run_script("SELECT clock_timestamp()");
  connection.run_script(fmt::format("SELECT set_config('hapax.mark', '{}', false)", mark));
  Connection other(options);
  if (other.run_script("SELECT current_setting('hapax.mark', true)") != mark) return;
  throw Failure(Failure::Code::misuse, "PostgreSQL: " + pooler_advice());
}

std::string read_identity(Connection& connection, const std::string& schema) {
  try {
    // In one statement, with the schema named: a pooler may give the next one to another server connection.
    return connection.run_script(fmt::format("SELECT {} FROM {}.store_identity i",
                                             store_identity_sql(identifier(schema) + ".queues"), identifier(schema)));
  } catch (const Refused& refused) {
    if (!refused.is("55000")) throw;
    throw Failure(Failure::Code::unavailable, fmt::format("the schema {} is being restored and not whole yet", schema));
  }
}

void prepare_schema(Connection& connection, const std::string& schema, bool create, bool migrate_older) {
  check_encoding(connection);
  std::int64_t version = version_of(connection, schema);
  refuse_newer(schema, version);
  if (version == 0 && !create) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("the database has no schema {} of Hapax's: run `hapax migrate`", schema));
  }
  if (version == 0 || (migrate_older && version < newest_schema_version())) {
    migrate(connection, schema);
    version = version_of(connection, schema);
  }
  if (version < newest_schema_version()) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("the schema {} has the older version {}: run `hapax migrate` to bring it"
                              " to {}",
                              schema, version, newest_schema_version()));
  }
}

}  // namespace hapax::postgres
