// Executions and ledger entries as rows.
#pragma once

#include <string>

#include "core/execution.h"
#include "core/ledger.h"
#include "store/sqlite/connection.h"

namespace hapax::sqlite {

// An execution and what the table knows beside it.
struct Row {
  std::int64_t seq = 0;
  std::int64_t queue_no = 0;
  std::int32_t failures = 0;  // rows in failed_attempts
  Execution execution;
  // As stored, to detect what a transition has counted again.
  std::optional<Time> stored_run_at = std::nullopt, stored_lease_end = std::nullopt;
  // Of a new one: what run_at was counted with. Absent: the caller named it.
  std::optional<Duration> run_in = std::nullopt;
};

// What transitions read and change: cheap to load, and all that save() needs. Leaves out type, input, input_hash, the
// key, and all of the identity but its hash. The table is called `e`.
extern const char* const kStateColumns;
// Those, and the rest but for the names of the queue.
extern const char* const kAllColumns;

// Read what was selected with the columns above. The names of namespace and queue are the caller's to fill in, and so
// are the failed attempts.
// An execution that does not match its checksums is read as damaged.
void read_state(const Run& run, Row& row);
void read_all(const Run& run, Row& row);

// Inputs longer than this are kept in large_inputs.
constexpr std::size_t kLargeInput = 2000;

// The columns and parameters of a new execution, in the order in which bind_new binds them: seq, queue_no, the rest.
extern const char* const kInsertExecution;
void bind_new(Run& run, const Row& row);

// The changing columns, in the order in which bind_state binds them; the seq comes last.
extern const char* const kUpdateExecution;
void bind_state(Run& run, const Row& row, Time now);

// Whether the checksum in that column is this one, or there is none.
bool matches(const Run& run, int column, std::uint32_t checksum);

extern const char* const kSelectAttempts;  // of one seq, in order; their checksum is the last column
AttemptRecord read_attempt(const Run& run);
constexpr int kAttemptChecksum = 8;

// The small number that stands for an idempotency key in its index. Equal keys have equal numbers; not the reverse.
std::int64_t key_hash(std::string_view key);

extern const char* const kTombstoneColumns;  // the tables are called `t` and `q`
void read_tombstone(const Run& run, int first_column, LedgerEntry& entry);

}  // namespace hapax::sqlite
