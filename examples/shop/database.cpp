#include "database.h"

#include <stdexcept>

namespace shop {

namespace {

[[noreturn]] void fail(sqlite3* connection, const std::string& what) {
  throw std::runtime_error(what + ": " + (connection ? sqlite3_errmsg(connection) : "out of memory"));
}

}  // namespace

Database::Database(const std::string& path) : connection_(nullptr, sqlite3_close) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(path.c_str(), &opened);
  connection_.reset(opened);
  if (code != SQLITE_OK) fail(opened, path);
  sqlite3_busy_timeout(opened, 10'000);
}

void Database::run(const std::string& sql) {
  if (sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(get(), sql);
}

Transaction::~Transaction() {
  if (is_open_) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  is_open_ = false;
}

Statement::Statement(Database& database, const std::string& sql, std::initializer_list<Value> values)
    : database_(database), statement_(nullptr, sqlite3_finalize) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(database.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail(database.get(), sql);
  statement_.reset(prepared);
  int index = 0;
  for (const Value& value : values) {
    ++index;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      sqlite3_bind_int64(prepared, index, *number);
    } else {
      const std::string& text = std::get<std::string>(value);
      sqlite3_bind_text(prepared, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
  }
}

bool Statement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(database_.get(), sqlite3_sql(statement_.get()));
  return code == SQLITE_ROW;
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text ? std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))) : "";
}

int change(Database& database, const std::string& sql, std::initializer_list<Statement::Value> values) {
  Statement(database, sql, values).next();
  return sqlite3_changes(database.get());
}

}  // namespace shop
