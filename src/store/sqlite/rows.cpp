#include "store/sqlite/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checksum.h"
#include "store/sqlite/columns.h"

namespace hapax::sqlite {

namespace {

std::string joined(const std::vector<std::string>& parts, std::string_view before = "", std::string_view after = "") {
  std::string out;
  for (const std::string& part : parts) out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", before, part, after);
  return out;
}

// The order of the columns in the table: what finishing reads comes first, what only readers want comes last.
const auto kState = [](auto&& visit, auto& e) { state_fields(visit, e); };
const auto kRuling = [](auto&& visit, auto& e) { ruling_fields(visit, e); };
const auto kTelling = [](auto&& visit, auto& e) {
  telling_fields(visit, e);
  rare_fields(visit, e);
};

std::string placeholders(std::size_t count) { return joined(std::vector<std::string>(count, "?")); }

}  // namespace

std::string executions_table() {
  return fmt::format(R"sql(
CREATE TABLE hapax_executions (
  seq INTEGER PRIMARY KEY,
  queue_no INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  parked INTEGER NOT NULL DEFAULT 0,    -- pending, but its concurrency key has no free slot
  due_at INTEGER,                       -- when sweeping has something to do here
  failures INTEGER NOT NULL DEFAULT 0,  -- rows in hapax_failed_attempts
  run_in_ms INTEGER,                    -- what run_at was counted with; NULL: the caller named it. See clock_set_back()
  lease_ms INTEGER,                     -- the same of the lease
  state_sum INTEGER NOT NULL,           -- CRC-32C of what changes; see core/checksum.h
  {},
  {},
  {},
  fact_sum INTEGER NOT NULL,            -- CRC-32C of the texts that never change
  key_hash INTEGER,                     -- of the idempotency key: a small index instead of a large one
  input TEXT                            -- NULL: in hapax_large_inputs
);)sql",
                     joined(columns_of(kState).definitions), joined(columns_of(kRuling).definitions),
                     joined(columns_of(kTelling).definitions));
}

const std::string kStateColumns =
    fmt::format("e.seq, e.queue_no, e.kind, e.failures, e.state_sum, {}, {}", joined(columns_of(kState).names, "e."),
                joined(columns_of(kRuling).names, "e."));
const std::string kAllColumns =
    fmt::format("{}, {}, e.fact_sum, coalesce(e.input, (SELECT l.input FROM hapax_large_inputs l WHERE l.seq = e.seq))",
                kStateColumns, joined(columns_of(kTelling).names, "e."));

const std::string kInsertExecution = [] {
  std::vector<std::string> columns = {"seq",       "queue_no", "kind",     "due_at", "run_in_ms",
                                      "state_sum", "fact_sum", "key_hash", "input"};
  for (const ColumnNames& part : {columns_of(kState), columns_of(kRuling), columns_of(kTelling)}) {
    columns.insert(columns.end(), part.names.begin(), part.names.end());
  }
  return fmt::format("INSERT INTO hapax_executions ({}) VALUES ({}) ON CONFLICT (id) DO NOTHING", joined(columns),
                     placeholders(columns.size()));
}();

const std::string kUpdateExecution = fmt::format(
    "UPDATE hapax_executions SET parked = 0, due_at = ?, failures = ?, run_in_ms = coalesce(?, run_in_ms),"
    " lease_ms = coalesce(?, lease_ms), state_sum = ?, {} WHERE seq = ?",
    joined(columns_of(kState).names, "", " = ?"));

const char* const kSelectAttempts = R"sql(
SELECT attempt, worker, started_at, ended_at, error_type, error_message, error_stack, error_details, secret,
  reported, sum
FROM hapax_failed_attempts WHERE seq = ? ORDER BY ordinal)sql";

const char* const kTombstoneColumns =
    "q.name_space, q.queue, t.expires_at, t.owner, t.input_hash, t.identity_strategy, t.identity_scope_tag,"
    " t.identity_scope_name, t.kind, t.type, t.idempotency_key, t.status, t.created_at, t.finished_at";

bool matches(const Run& run, int column, std::uint32_t checksum) { return run.int64(column) == std::int64_t{checksum}; }

namespace {

// Gives back the column after the last one that it read.
int read_state_columns(const Run& run, Row& row) {
  Execution& e = row.execution;
  row.seq = run.int64(0);
  row.queue_no = run.int64(1);
  e.kind = static_cast<Kind>(run.int32(2));
  row.failures = run.int32(3);
  int column = 5;
  ReadColumns read(run, column);
  state_fields(read, e);
  ruling_fields(read, e);
  e.damaged = !matches(run, 4, checksum_of_state(e));
  row.stored_run_at = e.run_at;
  row.stored_lease_end = e.lease_expires_at;
  return column;
}

}  // namespace

void read_state(const Run& run, Row& row) { read_state_columns(run, row); }

void read_all(const Run& run, Row& row) {
  int column = read_state_columns(run, row);
  Execution& e = row.execution;
  kTelling(ReadColumns(run, column), e);
  e.input = run.text(column + 1);
  e.damaged = e.damaged || !matches(run, column, checksum_of_facts(e));
}

void bind_new(Run& run, const Row& row) {
  const Execution& e = row.execution;
  const bool is_large = e.input.size() > kLargeInput;
  run.bind(row.seq).bind(row.queue_no).bind(e.kind).bind(e.due_at()).bind(row.run_in);
  run.bind(std::int64_t{checksum_of_state(e)}).bind(std::int64_t{checksum_of_facts(e)});
  e.idempotency_key ? run.bind(key_hash(*e.idempotency_key)) : run.bind(std::nullopt);
  is_large ? run.bind(std::nullopt) : run.bind(e.input);
  BindColumns bind(run);
  state_fields(bind, e);
  ruling_fields(bind, e);
  kTelling(bind, e);
}

void bind_state(Run& run, const Row& row, Time now) {
  const Execution& e = row.execution;
  const auto counted = [&](const std::optional<Time>& instant, const std::optional<Time>& stored) {
    return instant && instant != stored ? std::optional(std::max(Duration(0), *instant - now)) : std::nullopt;
  };
  run.bind(e.due_at()).bind(row.failures);
  run.bind(counted(e.run_at, row.stored_run_at)).bind(counted(e.lease_expires_at, row.stored_lease_end));
  run.bind(std::int64_t{checksum_to_store(checksum_of_state(e), e.damaged)});
  state_fields(BindColumns(run), e);
  run.bind(row.seq);
}

AttemptRecord read_attempt(const Run& run) {
  AttemptRecord record;
  int column = 0;
  fields(ReadColumns(run, column), record);
  return record;
}

std::int64_t key_hash(std::string_view key) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char byte : key) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  return hash;
}

void read_tombstone(const Run& run, int first_column, LedgerEntry& entry) {
  int column = first_column;
  Tombstone& tombstone = entry.tombstone.emplace();
  entry.name_space = run.text(column++);
  tombstone.queue = run.text(column++);
  entry.expires_at = run.time(column++);
  entry.owner = run.bytes<ExecutionId>(column++);
  entry.input_hash = run.bytes<InputHash>(column++);
  entry.identity.strategy = static_cast<Strategy>(run.int32(column++));
  entry.identity.scope.tag = static_cast<Scope::Tag>(run.int32(column++));
  entry.identity.scope.name = run.text(column++);
  tombstone.kind = static_cast<Kind>(run.int32(column++));
  tombstone.type = run.text(column++);
  tombstone.idempotency_key = run.text_if(column++);
  tombstone.status = static_cast<Status>(run.int32(column++));
  tombstone.created_at = entry.created_at = run.time(column++);
  tombstone.finished_at = run.time(column);
}

}  // namespace hapax::sqlite
