// The embedded store: one SQLite file, shared by all processes on the machine that open it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/time.h"
#include "store/call_deadline.h"
#include "store/store.h"

struct sqlite3;

namespace hapax {

struct SqliteOptions {
  std::string path;
  bool create = true;                // false: a missing file is a Failure::misuse
  bool migrate = false;              // an older schema is brought up to date instead of being refused
  Duration timeout = kStoreTimeout;  // of every call: for this program's other calls and other processes' transactions
};

// Opens the file, creating and migrating it if it is new or empty; a new one can be read by its owner alone. WAL
// journal, synchronous=FULL. The clock must outlive the store. Throws Failure::misuse if the file cannot be opened, has
// an older schema (says to run `hapax migrate`) or a newer one than this program knows; Failure::corrupt if SQLite
// finds it damaged.
std::unique_ptr<Store> open_sqlite_store(const SqliteOptions& options, const Clock& clock);

// Executions that carry a time to come as the one at which they were created or started: their clock was ahead.
struct StampsAhead {
  std::int64_t executions = 0;  // among the newest, and those that run
  Time latest;
};
// Nothing for a file without Hapax tables. Throws Failure as opening does.
StampsAhead find_stamps_ahead(const std::string& path, Time now);

// Submits on a connection of the caller's to the store's file, inside a transaction that the caller began: the
// execution exists if and only if the caller commits. On a Failure nothing of the submission is left in the
// transaction, which goes on; or all of it is rolled back, which the Failure then says. Throws Failure::misuse if no
// transaction is open or the file has no Hapax tables of this schema.
SubmitOutcome submit_in_transaction(sqlite3* connection, const Submission& submission, const QueuePolicies& policies,
                                    Time now);

}  // namespace hapax
