// A connection in pipeline mode: statements are sent ahead and their rows received later, in the same order, so that a
// transaction costs few round trips.
#pragma once

#include <libpq-fe.h>

#include <deque>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/failure.h"
#include "store/call_deadline.h"
#include "store/postgres/connection/addresses.h"
#include "store/postgres/connection/values.h"

namespace hapax::postgres {

struct ConnectionOptions {
  std::vector<std::string> hosts;  // to try in turn: keyword strings that libpq understands
  Resolve resolve = addresses_of;
  Duration connect_timeout{10'000};  // of each address
  std::string schema = "hapax";
  bool pooled = false;           // behind a pooler that hands out server connections for a transaction each
  bool synchronous = true;       // false: a commit does not wait for the disk
  int lock_timeout_ms = 0;       // after which a wait for a lock is given up; 0: never
  int statement_timeout_ms = 0;  // likewise a statement, if this end has long gone
  std::string identity = {};     // every transaction is refused unless the store still has this one; empty: any
  int interrupt_fd = -1;         // ends all waiting when it becomes readable
};

// A statement with a name, under which each connection prepares it once. The name is unique in the program.
struct Statement {
  std::string name;
  std::string sql;
};

// The server refused a statement. The transaction is over, the connection is usable again after rollback().
class Refused : public std::runtime_error {
 public:
  Refused(std::string sqlstate, const std::string& message)
      : std::runtime_error(message), sqlstate_(std::move(sqlstate)) {}

  const std::string& sqlstate() const { return sqlstate_; }
  bool is(std::string_view sqlstate) const { return sqlstate_ == sqlstate; }
  // Another transaction was at the same rows: a deadlock, a serialization failure, or a row that it inserted first.
  // Repeating works.
  bool is_conflict() const { return is("40P01") || is("40001") || is("23505"); }
  Failure as_failure() const;

 private:
  std::string sqlstate_;
};

// The connection is gone.
class Lost : public std::runtime_error {
 public:
  enum class Cause { gone, silent };  // silent: the deadline came before the server's answer

  Lost(const std::string& message, bool committing, Cause cause = Cause::gone)
      : std::runtime_error(message), committing_(committing), cause_(cause) {}

  bool committing() const { return committing_; }  // what was sent may have been committed
  Cause cause() const { return cause_; }
  Failure as_failure() const;

 private:
  bool committing_;
  Cause cause_;
};

// What to do about a pooler that hands out server connections for a transaction each, if the URL does not name it.
std::string pooler_advice();

// The store does not have the identity of ConnectionOptions any more, or there is none. Nothing was done.
class Replaced : public Refused {
 public:
  using Refused::Refused;
};

// The identity of the store in the schema: of its tables, and of the running server. It changes when the schema is
// created anew, a dump is restored, the tables are emptied, or another server answers, which may have less data. For
// `i`, a row of store_identity: in hexadecimal, the parameters of the guard one after the other.
std::string store_identity_sql(const std::string& queues = "queues");

// Used by one thread at a time. Whatever it waits for, it waits until CallDeadline::current() at most, and then it is
// Lost.
class Connection {
 public:
  // Throws Refused or Lost.
  explicit Connection(const ConnectionOptions& options);
  // The caller's own connection, within its transaction: statements run one by one, nothing is prepared.
  Connection(PGconn* borrowed, const std::string& schema);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  PGconn* handle() const { return handle_; }
  bool broken() const { return broken_ || PQstatus(handle_) != CONNECTION_OK; }

  // ---- within a transaction

  void begin();
  // One that costs no BEGIN and COMMIT: for what takes one round trip. Cannot be rolled back.
  void begin_implicitly();
  // For reads: every round trip is a separate transaction, so that none has to be ended.
  void begin_reading();
  void send(const Statement& statement, const Parameters& parameters = {});
  void send(const std::string& sql, const Parameters& parameters = {});               // not prepared
  void send_silently(const Statement& statement, const Parameters& parameters = {});  // its rows are ignored
  Rows receive();  // of the statement that was sent first of those not received yet
  Rows run(const Statement& statement, const Parameters& parameters = {}) {
    return send(statement, parameters), receive();
  }
  void commit();  // everything that was sent must have been received, or is of no interest
  // Commits in the round trip that brings the rows of what was sent.
  Rows receive_and_commit();
  void rollback() noexcept;

  // Outside of pipelines: several statements at once, the first value of the last one as text. For migrations.
  std::string run_script(const std::string& sql);

 private:
  // A result to come; of a silent one only an error is of interest.
  enum class Pending { statement, silent, prepare, guard, sync };

  void connect();
  // Each gives back why not.
  std::string try_host(const std::string& host);
  std::string try_address(const std::string& address);
  void guard();
  void configure();
  void dispatch(Pending kind, const Statement* statement, const std::string& sql, const Parameters& parameters);
  void queue_sync();
  Rows next();  // the rows that are due
  Rows take_result(bool sync);
  void await_result();
  // Until the socket is ready for these events, or the deadline.
  bool wait_for_socket(short events);
  void check_sent(int sent);
  [[noreturn]] void fail(const PGresult* result);
  [[noreturn]] void fail_guard(const PGresult* result);
  [[noreturn]] void lose();
  Rows run_at_once(const std::string& sql, const Parameters& parameters);
  void drain();

  ConnectionOptions options_;
  PGconn* handle_ = nullptr;
  bool silent_ = false;  // the last address that was tried did not answer in time
  const bool borrowed_ = false;
  bool broken_ = false;
  bool explicit_ = false;  // BEGIN was sent
  bool reading_ = false;
  bool committing_ = false;  // what ends the transaction may have reached the server
  bool unflushed_ = false;
  Parameters guard_;                                     // what the guard compares, of options_.identity
  bool guarded_ = false;                                 // since the last end of a pipeline
  std::deque<std::pair<Pending, std::string>> pending_;  // results to come, with the name of what is prepared
  std::deque<Rows> done_;                                // of a borrowed connection
  std::set<std::string> prepared_;                       // or about to be
};

}  // namespace hapax::postgres
