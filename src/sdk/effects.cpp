// once_in(): the rows of hapax_effects, in the caller's own transaction on SQLite or PostgreSQL.
#include <libpq-fe.h>
#include <sqlite3.h>

#include <array>
#include <memory>

#include "hapax/detail/effects.h"
#include "hapax/error.h"

namespace hapax::detail {

namespace {

struct Statements {
  // A second transaction with the same key waits at the insert for the first, and then finds its row.
  const char *insert, *find, *store;
};
constexpr Statements kSqlite{"INSERT INTO hapax_effects (effect_key) VALUES (?1) ON CONFLICT DO NOTHING",
                             "SELECT result FROM hapax_effects WHERE effect_key = ?1",
                             "UPDATE hapax_effects SET result = ?2 WHERE effect_key = ?1"};
constexpr Statements kPostgres{"INSERT INTO hapax_effects (effect_key) VALUES ($1) ON CONFLICT DO NOTHING",
                               "SELECT result FROM hapax_effects WHERE effect_key = $1",
                               "UPDATE hapax_effects SET result = $2 WHERE effect_key = $1"};

[[noreturn]] void refuse_without_transaction() {
  throw Error("InvalidRequest",
              "no transaction is open on this connection: begin one before once_in, and commit it after");
}

[[noreturn]] void fail(const std::string& what, const char* dialect, bool no_table, bool is_busy) {
  if (no_table) {
    throw Error("InvalidRequest",
                std::string("this database has no table hapax_effects: create it with the statement that `hapax "
                            "effects --sql ") +
                    dialect + "` prints (" + what + ")");
  }
  throw Error("StoreUnavailable", "once_in could not use hapax_effects: " + what, {}, is_busy);
}

}  // namespace

class Effect::Rows {
 public:
  virtual ~Rows() = default;

  virtual void run(const char* sql) = 0;
  virtual void try_run(const char* sql) = 0;             // never throws
  virtual bool insert(const std::string& key) = 0;       // false: it is there
  virtual std::string find(const std::string& key) = 0;  // its result; empty: nothing
  virtual void store(const std::string& key, const std::string& result) = 0;
};

namespace {

class SqliteRows final : public Effect::Rows {
 public:
  explicit SqliteRows(sqlite3* connection) : connection_(connection) {
    if (sqlite3_get_autocommit(connection)) refuse_without_transaction();
  }

  void run(const char* sql) override { check(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr)); }
  void try_run(const char* sql) override { sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr); }

  bool insert(const std::string& key) override {
    step(prepare(kSqlite.insert, key).get());
    return sqlite3_changes(connection_) == 1;
  }

  std::string find(const std::string& key) override {
    const Statement statement = prepare(kSqlite.find, key);
    step(statement.get());
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
    return text ? text : "";
  }

  void store(const std::string& key, const std::string& result) override {
    const Statement statement = prepare(kSqlite.store, key);
    check(sqlite3_bind_text(statement.get(), 2, result.data(), static_cast<int>(result.size()), SQLITE_TRANSIENT));
    step(statement.get());
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  Statement prepare(const char* sql, const std::string& key) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(connection_, sql, -1, &statement, nullptr));
    Statement owned(statement);
    check(sqlite3_bind_text(statement, 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT));
    return owned;
  }

  void step(sqlite3_stmt* statement) {
    const int code = sqlite3_step(statement);
    if (code != SQLITE_DONE && code != SQLITE_ROW) check(code);
  }

  void check(int code) {
    if (code == SQLITE_OK) return;
    const std::string what = sqlite3_errmsg(connection_);
    const bool is_busy = (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
    const bool no_table = what.find("no such table: hapax_effects") != std::string::npos;
    fail(is_busy ? what + " (another connection writes: begin with BEGIN IMMEDIATE, and set a busy time-out)" : what,
         "sqlite", no_table, is_busy);
  }

  sqlite3* const connection_;
};

class PostgresRows final : public Effect::Rows {
 public:
  explicit PostgresRows(PGconn* connection) : connection_(connection) {
    if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF || PQisnonblocking(connection)) {
      throw Error("InvalidRequest", "the connection is in pipeline or non-blocking mode: leave it first");
    }
    if (PQtransactionStatus(connection) != PQTRANS_INTRANS) refuse_without_transaction();
  }

  void run(const char* sql) override { check(PQexec(connection_, sql)); }
  void try_run(const char* sql) override { PQclear(PQexec(connection_, sql)); }

  bool insert(const std::string& key) override {
    return std::string_view(PQcmdTuples(execute<1>(kPostgres.insert, {key.c_str()}).get())) == "1";
  }

  std::string find(const std::string& key) override {
    const Result result = execute<1>(kPostgres.find, {key.c_str()});
    if (PQntuples(result.get()) == 0) fail("the row was deleted meanwhile", "postgres", false, true);
    return PQgetisnull(result.get(), 0, 0) ? "" : PQgetvalue(result.get(), 0, 0);
  }

  void store(const std::string& key, const std::string& result) override {
    execute<2>(kPostgres.store, {key.c_str(), result.c_str()});
  }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using Result = std::unique_ptr<PGresult, Clear>;

  template <std::size_t N>
  Result execute(const char* sql, const std::array<const char*, N>& values) {
    return check(PQexecParams(connection_, sql, static_cast<int>(N), nullptr, values.data(), nullptr, nullptr, 0));
  }

  Result check(PGresult* result) {
    Result owned(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return owned;
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const std::string_view code = state ? state : "";
    const bool is_busy = code.starts_with("40") || code == "55P03";  // serialization, deadlock; a lock time-out
    fail(PQerrorMessage(connection_), "postgres", code == "42P01", is_busy);
  }

  PGconn* const connection_;
};

}  // namespace

Effect::Effect(sqlite3* connection, std::string key)
    : key_(std::move(key)), rows_(std::make_unique<SqliteRows>(connection)) {
  begin();
}

Effect::Effect(pg_conn* connection, std::string key)
    : key_(std::move(key)), rows_(std::make_unique<PostgresRows>(connection)) {
  begin();
}

// After an error PostgreSQL takes nothing but the way back to the savepoint.
void Effect::begin() {
  rows_->run("SAVEPOINT hapax_effect");
  try {
    if (!rows_->insert(key_)) stored_ = rows_->find(key_);
  } catch (...) {
    rows_->try_run("ROLLBACK TO SAVEPOINT hapax_effect");
    rows_->try_run("RELEASE SAVEPOINT hapax_effect");
    throw;
  }
  if (stored_) {
    rows_->run("RELEASE SAVEPOINT hapax_effect");
  } else {
    is_open_ = true;
  }
}

Effect::~Effect() {
  if (!is_open_) return;
  rows_->try_run("ROLLBACK TO SAVEPOINT hapax_effect");
  rows_->try_run("RELEASE SAVEPOINT hapax_effect");
}

void Effect::store(const std::string& result_json) {
  if (!result_json.empty()) rows_->store(key_, result_json);
  rows_->run("RELEASE SAVEPOINT hapax_effect");
  is_open_ = false;
}

}  // namespace hapax::detail
