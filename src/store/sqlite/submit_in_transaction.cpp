#include <fmt/format.h>

#include "store/sqlite/file_place.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_rows.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/verbs.h"

namespace hapax {

namespace {

using namespace sqlite;

// Before anything is read: once a transaction has read, and another connection has written since, SQLite refuses its
// writes without waiting for anybody.
void lock_for_writing(Connection& connection) {
  sqlite3* handle = connection.handle();
  const int result = sqlite3_exec(handle, "DELETE FROM hapax_store WHERE false", nullptr, nullptr, nullptr);
  if (result == SQLITE_ERROR) return;  // it has no such table
  if (sqlite3_extended_errcode(handle) == SQLITE_BUSY_SNAPSHOT) {
    throw Failure(Failure::Code::unavailable,
                  fmt::format("{}: your transaction has read, and another connection has written since, so SQLite does "
                              "not let it write any more; roll it back, and begin it with BEGIN IMMEDIATE",
                              connection.path()));
  }
  if (result != SQLITE_OK) connection.exec("DELETE FROM hapax_store WHERE false");  // throws, or is in time
}

void check_usable(Connection& connection) {
  if (sqlite3_get_autocommit(connection.handle())) {
    throw Failure(Failure::Code::misuse, "no transaction is open on this connection: BEGIN one first");
  }
  if (has_moved(connection.handle())) {
    throw Failure(
        Failure::Code::unavailable,
        fmt::format("{} was deleted or replaced while you had it open: what you commit there is lost. Open it "
                    "anew",
                    connection.path()));
  }
  lock_for_writing(connection);
  if (schema_version(connection) != newest_schema_version()) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("'{}' has no Hapax tables of this version: open the file that the app has open",
                              connection.path()));
  }
}

void undo(sqlite3* handle) {
  sqlite3_exec(handle, "ROLLBACK TO hapax_submit; RELEASE hapax_submit", nullptr, nullptr, nullptr);
}

}  // namespace

SubmitOutcome submit_in_transaction(sqlite3* handle, const Submission& submission, const QueuePolicies& policies,
                                    Time now) {
  auto borrowed = std::make_unique<Connection>(handle);
  check_usable(*borrowed);
  Tables tables(std::move(borrowed));
  Connection& connection = tables.connection();
  connection.exec("SAVEPOINT hapax_submit");
  try {
    tables.begin(now);
    Batch batch{tables, policies, now};
    SubmitOutcome outcome = SqliteRows(batch).submit(submission);
    connection.exec("RELEASE hapax_submit");
    return outcome;
  } catch (const Failure& failure) {
    // A full disk or an I/O error may make SQLite roll back everything by itself.
    if (sqlite3_get_autocommit(handle)) {
      throw Failure(failure.code(), fmt::format("{}; SQLite has rolled back your whole transaction, not only this "
                                                "submission: begin it anew",
                                                failure.what()));
    }
    undo(handle);
    throw;
  } catch (...) {
    undo(handle);
    throw;
  }
}

}  // namespace hapax
