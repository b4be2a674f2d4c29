#include "store/sqlite/rows.h"

#include <algorithm>

#include "core/checksum.h"
#include "core/hash.h"

namespace hapax::sqlite {

#define HAPAX_STATE_COLUMNS                                                                                       \
  "e.seq, e.id, e.queue_no, e.kind, e.status, e.priority, e.run_at, e.attempt, e.attempt_limit, e.max_attempts, " \
  "e.retry_initial_ms, e.retry_factor, e.retry_max_ms, e.timeout_ms, e.deadline_at, e.created_at, e.started_at, " \
  "e.finished_at, e.cancel_requested_at, e.cancel_by, e.lease_secret, e.lease_expires_at, e.attempt_ends_by, "    \
  "e.failures, e.worker, e.concurrency_key, e.error_type, e.error_message, e.result, e.identity_hash, e.parent, " \
  "e.step, e.awaited, e.state_sum"

const char* const kStateColumns = HAPAX_STATE_COLUMNS;
const char* const kAllColumns = HAPAX_STATE_COLUMNS
    ", e.strategy, e.scope_tag, e.scope_name, e.type, e.idempotency_key, e.parent_workflow_id, e.input_hash, "
    "coalesce(e.input, (SELECT l.input FROM large_inputs l WHERE l.seq = e.seq)), e.fact_sum, e.superseded";

#undef HAPAX_STATE_COLUMNS

const char* const kInsertExecution = R"sql(
INSERT INTO executions (
  seq, id, queue_no, kind, status, priority, run_at, due_at, attempt, attempt_limit, max_attempts,
  retry_initial_ms, retry_factor, retry_max_ms, timeout_ms, deadline_at, created_at,
  worker, concurrency_key, identity_hash, parent, step, awaited, strategy, scope_tag, scope_name,
  type, key_hash, idempotency_key, parent_workflow_id, input_hash, input, state_sum, fact_sum, run_in_ms,
  superseded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING)sql";

const char* const kUpdateExecution = R"sql(
UPDATE executions SET
  status = ?, parked = 0, run_at = ?, due_at = ?, attempt = ?, attempt_limit = ?, deadline_at = ?, started_at = ?,
  finished_at = ?, cancel_requested_at = ?, cancel_by = ?, lease_secret = ?, lease_expires_at = ?, attempt_ends_by = ?,
  failures = ?, worker = ?, error_type = ?, error_message = ?, result = ?, awaited = ?, state_sum = ?,
  run_in_ms = coalesce(?, run_in_ms), lease_ms = coalesce(?, lease_ms)
WHERE seq = ?)sql";

const char* const kSelectAttempts = R"sql(
SELECT attempt, worker, started_at, ended_at, error_type, error_message, secret, reported, sum
FROM failed_attempts WHERE seq = ? ORDER BY ordinal)sql";

const char* const kTombstoneColumns =
    "q.name_space, q.queue, t.expires_at, t.owner, t.input_hash, t.strategy, t.scope_tag, t.scope_name, t.kind, "
    "t.type, t.idempotency_key, t.status, t.created_at, t.finished_at";

namespace {

std::optional<Duration> duration_if(const Run& run, int column) {
  return run.is_null(column) ? std::nullopt : std::optional<Duration>(run.int64(column));
}

// The state that a new row begins with: bind_new writes no more of it.
std::uint32_t checksum_of_new(const Execution& e) {
  Execution begun;
  begun.status = e.status;
  begun.run_at = e.run_at;
  begun.attempt = e.attempt;
  begun.attempt_limit = e.attempt_limit;
  return checksum_of_state(begun);
}

}  // namespace

// What an earlier version wrote has no checksum.
bool matches(const Run& run, int column, std::uint32_t checksum) {
  return run.is_null(column) || run.int64(column) == std::int64_t{checksum};
}

void read_state(const Run& run, Row& row) {
  Execution& e = row.execution;
  row.seq = run.int64(0);
  e.id = run.bytes<ExecutionId>(1);
  row.queue_no = run.int64(2);
  e.kind = static_cast<Kind>(run.int32(3));
  e.status = static_cast<Status>(run.int32(4));
  e.priority = run.int32(5);
  e.run_at = run.time(6);
  e.attempt = run.int32(7);
  e.attempt_limit = run.int32(8);
  e.max_attempts = run.int32(9);
  e.retry = {.initial = Duration(run.int64(10)), .factor = run.real(11), .max = Duration(run.int64(12))};
  e.timeout = duration_if(run, 13);
  e.deadline_at = run.time_if(14);
  e.created_at = run.time(15);
  e.started_at = run.time_if(16);
  e.finished_at = run.time_if(17);
  e.cancel_requested_at = run.time_if(18);
  e.cancel_by = run.time_if(19);
  e.lease_secret = run.bytes_if<LeaseSecret>(20);
  e.lease_expires_at = run.time_if(21);
  e.attempt_ends_by = run.time_if(22);
  row.failures = run.int32(23);
  e.worker = run.text(24);
  e.concurrency_key = run.text_if(25);
  if (!run.is_null(26)) e.error = AttemptError{std::string(run.text(26)), std::string(run.text(27))};
  e.result = run.text_if(28);
  if (!run.is_null(29)) e.identity.emplace().hash = run.bytes<IdentityHash>(29);
  e.parent = run.bytes_if<ExecutionId>(30);
  e.step = run.int32(31);
  e.awaited = run.int32(32) != 0;
  e.damaged = !matches(run, 33, checksum_of_state(e));
  row.stored_run_at = e.run_at;
  row.stored_lease_end = e.lease_expires_at;
}

void read_all(const Run& run, Row& row) {
  read_state(run, row);
  Execution& e = row.execution;
  if (e.identity) {
    e.identity->strategy = static_cast<Strategy>(run.int32(34));
    e.identity->scope = {static_cast<Scope::Tag>(run.int32(35)), std::string(run.text(36))};
  }
  e.type = run.text(37);
  e.idempotency_key = run.text_if(38);
  e.parent_workflow_id = run.text(39);
  e.input_hash = run.bytes<InputHash>(40);
  e.input = run.text(41);
  e.superseded = run.bytes_if<ExecutionId>(43);
  if (run.is_null(42)) {  // written by an earlier version
    e.damaged = e.damaged || sha256(e.input) != e.input_hash.bytes;
  } else {
    e.damaged = e.damaged || !matches(run, 42, checksum_of_facts(e));
  }
}

void bind_new(Run& run, const Row& row) {
  const Execution& e = row.execution;
  run.bind(row.seq).bind(e.id).bind(row.queue_no).bind(e.kind).bind(e.status).bind(e.priority).bind(e.run_at);
  run.bind(e.due_at()).bind(e.attempt).bind(e.attempt_limit).bind(e.max_attempts);
  run.bind(e.retry.initial).bind(e.retry.factor).bind(e.retry.max);
  run.bind(e.timeout).bind(e.deadline_at).bind(e.created_at).bind(e.concurrency_key);
  if (e.identity) {
    run.bind(e.identity->hash);
  } else {
    run.bind(std::nullopt);
  }
  run.bind(e.parent).bind(e.step).bind(static_cast<std::int32_t>(e.awaited));
  if (e.identity) {
    run.bind(static_cast<std::int32_t>(e.identity->strategy));
    run.bind(static_cast<std::int32_t>(e.identity->scope.tag)).bind(e.identity->scope.name);
  } else {
    run.bind(std::nullopt).bind(std::nullopt).bind(std::nullopt);
  }
  run.bind(e.type);
  if (e.idempotency_key) {
    run.bind(key_hash(*e.idempotency_key)).bind(*e.idempotency_key);
  } else {
    run.bind(std::nullopt).bind(std::nullopt);
  }
  if (e.parent) {
    run.bind(e.parent_workflow_id);
  } else {
    run.bind(std::nullopt);
  }
  run.bind(e.input_hash);
  if (e.input.size() > kLargeInput) {
    run.bind(std::nullopt);
  } else {
    run.bind(e.input);
  }
  run.bind(std::int64_t{checksum_of_new(e)}).bind(std::int64_t{checksum_of_facts(e)});
  run.bind(row.run_in).bind(e.superseded);
}

void bind_state(Run& run, const Row& row, Time now) {
  const Execution& e = row.execution;
  run.bind(e.status).bind(e.run_at).bind(e.due_at()).bind(e.attempt).bind(e.attempt_limit).bind(e.deadline_at);
  run.bind(e.started_at).bind(e.finished_at).bind(e.cancel_requested_at).bind(e.cancel_by).bind(e.lease_secret);
  run.bind(e.lease_expires_at).bind(e.attempt_ends_by).bind(row.failures).bind(e.worker);
  if (e.error) {
    run.bind(e.error->type).bind(e.error->message);
  } else {
    run.bind(std::nullopt).bind(std::nullopt);
  }
  run.bind(e.result).bind(static_cast<std::int32_t>(e.awaited));
  run.bind(std::int64_t{checksum_to_store(checksum_of_state(e), e.damaged)});
  const auto counted = [&](const std::optional<Time>& instant, const std::optional<Time>& stored) {
    return instant && instant != stored ? std::optional(std::max(Duration(0), *instant - now)) : std::nullopt;
  };
  run.bind(counted(e.run_at, row.stored_run_at)).bind(counted(e.lease_expires_at, row.stored_lease_end)).bind(row.seq);
}

AttemptRecord read_attempt(const Run& run) {
  return {.attempt = run.int32(0),
          .worker = std::string(run.text(1)),
          .started_at = run.time(2),
          .ended_at = run.time(3),
          .error = {std::string(run.text(4)), std::string(run.text(5))},
          .secret = run.bytes<LeaseSecret>(6),
          .reported = run.int32(7) != 0};
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
