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

// The table, with the columns of core/fields.h and the store's own.
std::string executions_table();

// What transitions read and change: cheap to load, and all that save() needs. Leaves out type, key and input. The table
// is called `e`.
extern const std::string kStateColumns;
// Those, and the rest but for the names of the queue.
extern const std::string kAllColumns;

// Read what was selected with the columns above. The names of namespace and queue are the caller's to fill in, and so
// are the failed attempts.
// An execution that does not match its checksums is read as damaged.
void read_state(const Run& run, Row& row);
void read_all(const Run& run, Row& row);

// Inputs longer than this are kept in large_inputs.
constexpr std::size_t kLargeInput = 2000;

// A new execution, and what changes of one that is stored; each with the parameters that are bound below.
extern const std::string kInsertExecution;
void bind_new(Run& run, const Row& row);

extern const std::string kUpdateExecution;
void bind_state(Run& run, const Row& row, Time now);

// Whether the checksum in that column is this one.
bool matches(const Run& run, int column, std::uint32_t checksum);

extern const char* const kSelectAttempts;  // of one seq, in order; their checksum is the last column
AttemptRecord read_attempt(const Run& run);
constexpr int kAttemptChecksum = 10;

// The small number that stands for an idempotency key in its index. Equal keys have equal numbers; not the reverse.
std::int64_t key_hash(std::string_view key);

extern const char* const kTombstoneColumns;  // the tables are called `t` and `q`
void read_tombstone(const Run& run, int first_column, LedgerEntry& entry);

}  // namespace hapax::sqlite
