// The program's own connection, for its own tables and its own transactions: sqlite3* or PGconn*, as the URL says. An
// app in memory or on a server has no database that the program could write to; then it is one in memory.
#pragma once

#include <libpq-fe.h>
#include <sqlite3.h>

#include <memory>
#include <stdexcept>
#include <string>

struct CloseConnection {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
  void operator()(PGconn* db) const { PQfinish(db); }
};

inline void run(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
  throw std::runtime_error(sql + ": " + sqlite3_errmsg(db));
}

inline std::unique_ptr<PGresult, decltype(&PQclear)> run(PGconn* db, const std::string& sql) {
  std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(db, sql.c_str()), PQclear);
  const auto status = PQresultStatus(result.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return result;
  throw std::runtime_error(sql + ": " + PQerrorMessage(db));
}

inline int number(sqlite3* db, const std::string& sql) {
  int found = 0;
  const auto read = [](void* out, int, char** values, char**) {
    return *static_cast<int*>(out) = std::stoi(*values), 0;
  };
  sqlite3_exec(db, sql.c_str(), read, &found, nullptr);
  return found;
}

inline int number(PGconn* db, const std::string& sql) { return std::stoi(PQgetvalue(run(db, sql).get(), 0, 0)); }

inline bool is_postgres(const std::string& url) { return url.starts_with("postgres"); }
inline bool has_own_database(const std::string& url) { return is_postgres(url) || url.starts_with("sqlite:"); }

// Calls the function with a connection, between BEGIN and COMMIT.
template <class Connection, class Function>
auto in_transaction_on(Connection* db, const std::string& begin, Function function) {
  run(db, begin);
  auto result = function(db);
  run(db, "COMMIT");
  return result;
}

template <class Function>
auto in_transaction(const std::string& url, Function function) {
  if (is_postgres(url)) {
    const std::unique_ptr<PGconn, CloseConnection> db(PQconnectdb(url.c_str()));
    return in_transaction_on(db.get(), "BEGIN", function);
  }
  sqlite3* opened = nullptr;
  const std::string file =
      url.starts_with("sqlite:") ? url.substr(url.find(':') + 1) : "file:own?mode=memory&cache=shared";
  sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr);
  const std::unique_ptr<sqlite3, CloseConnection> db(opened);
  sqlite3_busy_timeout(db.get(), 5000);
  return in_transaction_on(db.get(), "BEGIN IMMEDIATE", function);
}
