// A connection to the file: statements that reset themselves, a patient busy handler, and SQLite's errors as Failures.
#pragma once

#include <sqlite3.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/execution.h"
#include "core/failure.h"
#include "core/time.h"
#include "store/call_deadline.h"

namespace hapax::sqlite {

struct ConnectionOptions {
  std::string path;  // or a `file:` URI
  bool create = false;
  Duration busy_timeout{};  // for a lock, where no CallDeadline says otherwise
  int cache_kib = 2048;
  const std::atomic<bool>* interrupted = nullptr;  // true: no more waiting, and what runs ends
};

// Used by one thread at a time.
class Connection {
 public:
  // Throws Failure::misuse if the path cannot be opened for writing, Failure::corrupt if it is not a database.
  explicit Connection(const ConnectionOptions& options);
  // The caller's own connection: it is not changed and not closed.
  explicit Connection(sqlite3* borrowed);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return options_.path; }

  void exec(const char* sql);
  std::int64_t read_integer(const char* sql);

  // From now on a statement that runs then is given up: Failure::unavailable, and SQLite rolls back what it changed.
  void end_statements_at(CallDeadline::Instant instant) { statements_end_at_ = instant; }

  // Closing it leaves the write-ahead log as it is.
  void leave_log() { sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

  // An I/O error has made it unusable: the owner opens a new one.
  bool broken() const { return broken_; }

  [[noreturn]] void fail(int code);
  // An error of COMMIT itself: what was written may be found after a crash although it is rolled back here.
  [[noreturn]] void fail_commit(int code);

 private:
  static int on_busy(void* self, int times);
  static int on_progress(void* self);
  bool is_interrupted() const { return options_.interrupted && *options_.interrupted; }
  std::string describe(int code) const;

  ConnectionOptions options_;
  sqlite3* handle_ = nullptr;
  bool owned_ = true;
  bool broken_ = false;
  std::chrono::steady_clock::time_point busy_since_{};
  CallDeadline::Instant statements_end_at_ = CallDeadline::Instant::max();
  std::uint32_t jitter_ = 0;
};

// A prepared statement, kept as long as its connection.
class Statement {
 public:
  Statement(Connection& connection, const char* sql);
  explicit Statement(Connection& connection, const std::string& sql) : Statement(connection, sql.c_str()) {}
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  sqlite3_stmt* handle() const { return handle_; }
  Connection& connection() const { return connection_; }

 private:
  Connection& connection_;
  sqlite3_stmt* handle_ = nullptr;
};

// One run of a statement. Binds from left to right, reads by column, resets at the end. What is bound must outlive the
// run.
class Run {
 public:
  explicit Run(Statement& statement) : statement_(statement), handle_(statement.handle()) {}
  ~Run() { sqlite3_reset(handle_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Run& bind(std::int64_t value) { return check(sqlite3_bind_int64(handle_, ++bound_, value)); }
  Run& bind(std::int32_t value) { return check(sqlite3_bind_int(handle_, ++bound_, value)); }
  Run& bind(double value) { return check(sqlite3_bind_double(handle_, ++bound_, value)); }
  Run& bind(std::nullopt_t) { return check(sqlite3_bind_null(handle_, ++bound_)); }
  Run& bind(std::string_view text) {
    return check(sqlite3_bind_text64(handle_, ++bound_, text.data() ? text.data() : "", text.size(), SQLITE_STATIC,
                                     SQLITE_UTF8));
  }
  Run& bind(const std::string& text) { return bind(std::string_view(text)); }
  Run& bind(Time time) { return bind(to_ms(time)); }
  Run& bind(Duration duration) { return bind(static_cast<std::int64_t>(duration.count())); }
  template <std::size_t N>
  Run& bind(const std::array<std::uint8_t, N>& bytes) {
    return check(sqlite3_bind_blob(handle_, ++bound_, bytes.data(), static_cast<int>(N), SQLITE_STATIC));
  }
  Run& bind_blob(std::string_view bytes) {
    return check(sqlite3_bind_blob64(handle_, ++bound_, bytes.data(), bytes.size(), SQLITE_STATIC));
  }
  Run& bind(const ExecutionId& id) { return bind(id.bytes); }
  Run& bind(const LeaseSecret& secret) { return bind(secret.bytes); }
  template <class Tag>
  Run& bind(const Hash<Tag>& hash) {
    return bind(hash.bytes);
  }
  Run& bind(Kind kind) { return bind(static_cast<std::int32_t>(kind)); }
  Run& bind(Status status) { return bind(static_cast<std::int32_t>(status)); }
  template <class T>
  Run& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind(std::nullopt);
  }

  // The next row, if there is one.
  bool next() {
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) statement_.connection().fail(code);
    return false;
  }
  // To the end; how many rows the statement changed.
  int done() {
    while (next()) {}
    return sqlite3_changes(statement_.connection().handle());
  }

  bool is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  std::int64_t int64(int column) const { return sqlite3_column_int64(handle_, column); }
  std::int32_t int32(int column) const { return sqlite3_column_int(handle_, column); }
  double real(int column) const { return sqlite3_column_double(handle_, column); }
  Time time(int column) const { return from_ms(int64(column)); }
  std::optional<Time> time_if(int column) const { return is_null(column) ? std::nullopt : std::optional(time(column)); }
  std::string_view text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return {bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
  }
  std::string_view blob(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
    return {bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
  }
  std::optional<std::string> text_if(int column) const {
    return is_null(column) ? std::nullopt : std::optional<std::string>(text(column));
  }
  template <class T>  // ExecutionId, LeaseSecret, Hash
  T bytes(int column) const {
    T value;
    copy_blob(column, value.bytes.data(), value.bytes.size());
    return value;
  }
  // Whatever the column holds, by the type of where it goes.
  template <class T>
  void read(int column, T& value) const {
    if constexpr (std::is_same_v<T, std::string>) {
      value = text(column);
    } else if constexpr (std::is_same_v<T, Time>) {
      value = time(column);
    } else if constexpr (std::is_same_v<T, double>) {
      value = real(column);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = int32(column) != 0;
    } else if constexpr (requires { value.bytes; }) {
      copy_blob(column, value.bytes.data(), value.bytes.size());
    } else {
      value = static_cast<T>(int64(column));
    }
  }
  template <class T>
  std::optional<T> bytes_if(int column) const {
    return is_null(column) ? std::nullopt : std::optional<T>(bytes<T>(column));
  }

 private:
  Run& check(int code) {
    if (code != SQLITE_OK) statement_.connection().fail(code);
    return *this;
  }
  void copy_blob(int column, std::uint8_t* out, std::size_t size) const;

  Statement& statement_;
  sqlite3_stmt* handle_;
  int bound_ = 0;
};

// BEGIN IMMEDIATE … COMMIT; rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Connection& connection_;
  bool open_ = true;
};

// BEGIN … COMMIT of a reader: all of it sees one state of the data.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection) : connection_(connection) { connection.exec("BEGIN"); }
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  void end();

 private:
  Connection& connection_;
};

}  // namespace hapax::sqlite
