#include "store/sqlite/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

namespace hapax::sqlite {

namespace {

constexpr int kProgressSteps = 10'000;  // SQLite instructions between two checks of the clock: less than a millisecond

int primary(int code) { return code & 0xff; }

// SQLite gives its own new files the mode of the database's, but makes that one readable by everyone. If the file
// cannot be created here, SQLite cannot either, and reports it better.
void create_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
}

void check_path(const ConnectionOptions& options) {
  const std::string& path = options.path;
  if (path.empty())
    throw Failure(Failure::Code::misuse, "the store's path is empty: name a file, as in sqlite:hapax.db");
  if (path.starts_with("file:") || path == ":memory:") return;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    throw Failure(Failure::Code::misuse, fmt::format("{} is a directory: name a file in it", path));
  }
  if (!std::filesystem::exists(status) && !options.create) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("{} does not exist: check the path, or create it with `hapax migrate`", path));
  }
  if (!std::filesystem::exists(status)) create_private(path);
}

}  // namespace

Connection::Connection(const ConnectionOptions& options) : options_(options) {
  check_path(options);
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (options.create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(options.path.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    const std::string why = describe(code);
    sqlite3_close(handle_);
    const bool passing = primary(code) == SQLITE_IOERR || primary(code) == SQLITE_FULL || primary(code) == SQLITE_BUSY;
    throw Failure(passing ? Failure::Code::unavailable : Failure::Code::misuse, why);
  }
  try {
    sqlite3_busy_handler(handle_, &Connection::on_busy, this);
    sqlite3_progress_handler(handle_, kProgressSteps, &Connection::on_progress, this);
    jitter_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this) >> 4) | 1U;
    exec("PRAGMA synchronous = FULL");
    exec("PRAGMA foreign_keys = OFF");
    exec("PRAGMA temp_store = MEMORY");
    exec(fmt::format("PRAGMA cache_size = -{}", options.cache_kib).c_str());
    if (sqlite3_db_readonly(handle_, "main") == 1) {
      throw Failure(Failure::Code::misuse,
                    fmt::format("{}: the file is read-only: give this user the right to write it", options.path));
    }
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Connection::Connection(sqlite3* borrowed) : handle_(borrowed), owned_(false) {
  const char* path = sqlite3_db_filename(borrowed, "main");
  options_.path = path ? path : "";
}

Connection::~Connection() {
  if (owned_) sqlite3_close(handle_);
}

int Connection::on_busy(void* self, int times) {
  auto& connection = *static_cast<Connection*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (times == 0) connection.busy_since_ = now;
  const auto deadline = CallDeadline::current();
  const bool over = deadline == CallDeadline::Instant::max()
                        ? now - connection.busy_since_ >= connection.options_.busy_timeout
                        : now >= deadline;
  if (over || connection.is_interrupted()) return 0;
  // Short and uneven naps: processes that take turns under load neither starve nor march in step.
  connection.jitter_ ^= connection.jitter_ << 13;
  connection.jitter_ ^= connection.jitter_ >> 17;
  connection.jitter_ ^= connection.jitter_ << 5;
  std::this_thread::sleep_for(std::chrono::microseconds(500 + connection.jitter_ % 1000));
  return 1;
}

int Connection::on_progress(void* self) {
  const auto& connection = *static_cast<Connection*>(self);
  if (connection.is_interrupted()) return 1;
  const auto end = connection.statements_end_at_;
  return end != CallDeadline::Instant::max() && CallDeadline::Clock::now() >= end ? 1 : 0;
}

void Connection::exec(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::int64_t Connection::read_integer(const char* sql) {
  Statement statement(*this, sql);
  Run run(statement);
  return run.next() ? run.int64(0) : 0;
}

std::string Connection::describe(int code) const {
  std::string_view hint;
  switch (primary(code)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      hint = "another process kept it locked too long; nothing was done, and the same again may work";
      break;
    case SQLITE_INTERRUPT:
      hint = is_interrupted() ? "this program is ending; nothing was done"
                              : "it took too long; ask for less, by status, key or queue";
      break;
    case SQLITE_FULL: hint = "the disk is full; free some space"; break;
    case SQLITE_READONLY: hint = "the file is read-only; give this user the right to write it and its folder"; break;
    case SQLITE_CANTOPEN: hint = "the file cannot be opened; check that its folder exists and may be written"; break;
    case SQLITE_IOERR: hint = "reading or writing it failed; check the disk"; break;
    case SQLITE_CORRUPT: hint = "the file is damaged; restore it from a backup"; break;
    case SQLITE_NOTADB: hint = "the file is no SQLite database; name another one"; break;
    default: hint = "unexpected";
  }
  return fmt::format("{}: {} ({}, SQLite error {})", options_.path, hint,
                     handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code), code);
}

void Connection::fail(int code) {
  const std::string why = describe(code);
  switch (primary(code)) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: broken_ = true; throw Failure(Failure::Code::corrupt, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Failure(Failure::Code::unavailable, why, "Another process keeps the store's file locked.");
    case SQLITE_FULL: throw Failure(Failure::Code::unavailable, why, "The disk of the store is full.");
    case SQLITE_INTERRUPT: throw Failure(Failure::Code::unavailable, why);
    default: broken_ = true; throw Failure(Failure::Code::unavailable, why);
  }
}

void Connection::fail_commit(int code) {
  if (primary(code) != SQLITE_IOERR) fail(code);
  broken_ = true;
  throw Failure(Failure::Code::outcome_unknown, describe(code));
}

Statement::Statement(Connection& connection, const char* sql) : connection_(connection) {
  const int code = sqlite3_prepare_v3(connection.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  if (code != SQLITE_OK) connection.fail(code);
}

void Run::copy_blob(int column, std::uint8_t* out, std::size_t size) const {
  const void* blob = sqlite3_column_blob(handle_, column);
  if (!blob || static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)) != size) {
    throw Failure(Failure::Code::corrupt,
                  fmt::format("{}: the file is damaged; restore it from a backup ({} is not {} bytes long)",
                              statement_.connection().path(), sqlite3_column_name(handle_, column), size));
  }
  std::memcpy(out, blob, size);
}

Transaction::Transaction(Connection& connection) : connection_(connection) { connection.exec("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  // SQLite has rolled back by itself after some errors.
  if (open_ && !sqlite3_get_autocommit(connection_.handle())) {
    sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Transaction::commit() {
  const int code = sqlite3_exec(connection_.handle(), "COMMIT", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) connection_.fail_commit(code);
  open_ = false;
}

Snapshot::~Snapshot() {
  if (!sqlite3_get_autocommit(connection_.handle())) {
    sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Snapshot::end() { connection_.exec("COMMIT"); }

}  // namespace hapax::sqlite
