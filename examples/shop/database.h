// The shop's own database: SQLite, in the file that Hapax uses, too. Tables of Hapax begin with `hapax_`.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <variant>

namespace shop {

// A connection. Cheap to open: each request and each handler has its own.
class Database {
 public:
  explicit Database(const std::string& path);

  sqlite3* get() const { return connection_.get(); }
  void run(const std::string& sql);

 private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection_;
};

// Rolled back unless it is committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

// A statement with its values: `for (Statement rows(db, "SELECT …", {id}); rows.next();) rows.text(0)`.
class Statement {
 public:
  using Value = std::variant<std::int64_t, std::string>;
  Statement(Database& database, const std::string& sql, std::initializer_list<Value> values = {});

  bool next();
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::string text(int column) const;

 private:
  Database& database_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

// Runs a statement that changes rows, and returns how many.
int change(Database& database, const std::string& sql, std::initializer_list<Statement::Value> values);

}  // namespace shop
