// The store for many servers: a PostgreSQL database, 14 or newer, shared by all who open it.
#pragma once

#include <memory>
#include <string>

#include "core/time.h"
#include "store/call_deadline.h"
#include "store/store.h"

struct pg_conn;

namespace hapax {

struct PostgresOptions {
  // A URL (postgres://user@host/database, several hosts with commas) or keyword string, as libpq takes it. Of Hapax's
  // own in a URL's query: hapax_schema=NAME, and hapax_pooled=1 for a pooler such as PgBouncer that hands out server
  // connections for a transaction each: nothing is kept prepared then, and changes by others are noticed by polling
  // instead of LISTEN.
  std::string url;
  std::size_t connections = 12;      // at most, beside those for wake-ups
  bool create = true;                // false: a database without a schema of Hapax's is a Failure::misuse
  bool migrate = false;              // brings an older schema up to date; without, it is a Failure::misuse
  Duration timeout = kStoreTimeout;  // of every call; see store/store.h
  bool notify = true;                // false: others notice this handle's changes only by polling
};

// Opens the database, migrating it if it has no schema of Hapax's. Time is the server's unless a clock is given, which
// must outlive the store. Throws Failure::misuse if the schema is older (says to run `hapax migrate`) or newer than
// this program knows, or the URL is wrong; Failure::unavailable if the server cannot be reached.
std::unique_ptr<Store> open_postgres_store(const PostgresOptions& options, const Clock* clock = nullptr);

// Submits on the caller's own connection to the store's database, inside a transaction that the caller began: the
// execution exists if and only if the caller commits. On a Failure nothing of the submission is left in the
// transaction, which continues. Throws Failure::misuse if no transaction is open, the connection is in pipeline mode,
// or the database has no Hapax schema of this version. `url` is the store's, which names the schema.
SubmitOutcome submit_in_transaction(pg_conn* connection, const std::string& url, const Submission& submission,
                                    const QueuePolicies& policies);

}  // namespace hapax
