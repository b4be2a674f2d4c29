#include "bare_sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/hash.h"
#include "core/id.h"
#include "figures.h"

namespace hapax::bench {

namespace {

struct Database {
  explicit Database(const std::string& path) {
    if (sqlite3_open(path.c_str(), &handle) != SQLITE_OK) fail("open");
    exec("PRAGMA synchronous = FULL");
    exec("PRAGMA cache_size = -32768");
  }
  ~Database() { sqlite3_close_v2(handle); }

  void exec(const char* sql) const {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
  }
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(fmt::format("{}: {}", what, sqlite3_errmsg(handle)));
  }
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) fail(sql);
    return {statement, sqlite3_finalize};
  }
  void run(sqlite3_stmt* statement) const {
    if (sqlite3_step(statement) != SQLITE_DONE) fail(sqlite3_sql(statement));
    sqlite3_reset(statement);
  }

  sqlite3* handle = nullptr;
};

constexpr const char* kQueue =
    "INSERT INTO hapax_queues (name_space, queue, kind) VALUES ('default', 'default', 0) ON CONFLICT DO NOTHING";

constexpr const char* kInsert = R"sql(
INSERT INTO hapax_executions (id, queue_no, kind, status, priority, run_at, attempt, attempt_limit, max_attempts,
                              retry_initial_ms, retry_factor, retry_max_ms, created_at, worker, identity_hash,
                              identity_strategy, identity_scope_tag, identity_scope_name, type, key_hash,
                              idempotency_key, input_hash, input, awaited, step, parent_workflow_id, state_sum, fact_sum)
VALUES (?1, 1, 0, 0, 0, ?2, 0, 3, 3, 1000, 2.0, 60000, ?2, '', ?3, 0, 0, '', 'bench', ?4, ?5, ?6, ?7, 0, 0, '', 0, 0)
)sql";

constexpr const char* kLedger = "INSERT INTO hapax_identities (hash, owner) VALUES (?1, ?2)";

constexpr const char* kReady = R"sql(
SELECT seq, input FROM hapax_executions WHERE status = 0 AND parked = 0 AND queue_no = 1 AND run_at <= ?1
ORDER BY priority DESC, run_at, id LIMIT ?2
)sql";

constexpr const char* kClaim = R"sql(
UPDATE hapax_executions SET status = 1, attempt = attempt + 1, started_at = ?2, worker = 'bench', lease_secret = ?3,
                      lease_expires_at = ?4, due_at = ?4
WHERE seq = ?1
)sql";

constexpr const char* kComplete = R"sql(
UPDATE hapax_executions SET status = 3, finished_at = ?2, result = ?3, lease_expires_at = NULL, due_at = NULL
WHERE seq = ?1 AND status = 1
)sql";

}  // namespace

double bare_keyed_inserts(const std::string& path, std::int64_t rows, std::int64_t batch) {
  const Database db(path);
  db.exec(kQueue);
  const auto insert = db.prepare(kInsert), ledger = db.prepare(kLedger);
  const std::string input = "\"" + std::string(98, 'x') + "\"";
  const Digest input_hash = sha256(input);  // what is claimed is checked against it
  IdGenerator ids;
  const SystemClock clock;
  const double start = seconds_now();
  for (std::int64_t row = 0; row < rows;) {
    db.exec("BEGIN IMMEDIATE");
    for (std::int64_t end = std::min(rows, row + batch); row < end; ++row) {
      const Time now = clock.now();
      const ExecutionId id = ids.next(now);
      const std::string key = fmt::format("order-{:012}", row);
      const Digest hash = sha256(key);
      std::int64_t key_hash;
      std::memcpy(&key_hash, hash.data(), sizeof key_hash);
      sqlite3_bind_blob(insert.get(), 1, id.bytes.data(), 16, SQLITE_STATIC);
      sqlite3_bind_int64(insert.get(), 2, to_ms(now));
      sqlite3_bind_blob(insert.get(), 3, hash.data(), 32, SQLITE_STATIC);
      sqlite3_bind_int64(insert.get(), 4, key_hash);
      sqlite3_bind_text(insert.get(), 5, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
      sqlite3_bind_blob(insert.get(), 6, input_hash.data(), 32, SQLITE_STATIC);
      sqlite3_bind_text(insert.get(), 7, input.data(), static_cast<int>(input.size()), SQLITE_STATIC);
      db.run(insert.get());
      sqlite3_bind_blob(ledger.get(), 1, hash.data(), 32, SQLITE_STATIC);
      sqlite3_bind_int64(ledger.get(), 2, sqlite3_last_insert_rowid(db.handle));
      db.run(ledger.get());
    }
    db.exec("COMMIT");
  }
  return static_cast<double>(rows) / (seconds_now() - start);
}

double bare_claim_complete(const std::string& path, std::int64_t batch) {
  const Database db(path);
  const auto ready = db.prepare(kReady), claim = db.prepare(kClaim), complete = db.prepare(kComplete);
  const SystemClock clock;
  const std::string secret(16, 's');
  std::int64_t done = 0;
  const double start = seconds_now();
  for (std::vector<std::int64_t> claimed;; claimed.clear()) {
    const std::int64_t now = to_ms(clock.now());
    db.exec("BEGIN IMMEDIATE");
    sqlite3_bind_int64(ready.get(), 1, now);
    sqlite3_bind_int64(ready.get(), 2, batch);
    while (sqlite3_step(ready.get()) == SQLITE_ROW) claimed.push_back(sqlite3_column_int64(ready.get(), 0));
    sqlite3_reset(ready.get());
    for (std::int64_t seq : claimed) {
      sqlite3_bind_int64(claim.get(), 1, seq);
      sqlite3_bind_int64(claim.get(), 2, now);
      sqlite3_bind_blob(claim.get(), 3, secret.data(), 16, SQLITE_STATIC);
      sqlite3_bind_int64(claim.get(), 4, now + 60'000);
      db.run(claim.get());
    }
    db.exec("COMMIT");
    if (claimed.empty()) break;
    db.exec("BEGIN IMMEDIATE");
    for (std::int64_t seq : claimed) {
      sqlite3_bind_int64(complete.get(), 1, seq);
      sqlite3_bind_int64(complete.get(), 2, now);
      sqlite3_bind_text(complete.get(), 3, "{\"ok\":true}", -1, SQLITE_STATIC);
      db.run(complete.get());
    }
    db.exec("COMMIT");
    done += static_cast<std::int64_t>(claimed.size());
  }
  return static_cast<double>(done) / (seconds_now() - start);
}

void fill_with_closed(const std::string& path, std::int64_t rows) {
  const Database db(path);
  db.exec("PRAGMA synchronous = OFF");
  db.exec(kQueue);
  const auto fill = db.prepare(R"sql(
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
INSERT INTO hapax_executions (id, queue_no, kind, status, priority, run_at, attempt, attempt_limit, max_attempts,
                              retry_initial_ms, retry_factor, retry_max_ms, created_at, started_at, finished_at, worker,
                              type, input_hash, input, result, awaited, step, parent_workflow_id, state_sum, fact_sum)
SELECT CAST(printf('%016d', n) AS BLOB), 1, 0, 3, 0, ?2, 1, 3, 3, 1000, 2.0, 60000, ?2, ?2, ?2 + n / 100, 'bench',
       'bench', ?3, ?4, '{"ok":true}', 0, 0, '', 0, 0
FROM number
)sql");
  sqlite3_bind_int64(fill.get(), 1, rows);
  sqlite3_bind_int64(fill.get(), 2, to_ms(SystemClock().now()) - 20'000);
  const std::string input = R"({"customer":"customer-1234","order":12345678})";
  const Digest input_hash = sha256(input);
  sqlite3_bind_blob(fill.get(), 3, input_hash.data(), 32, SQLITE_STATIC);
  sqlite3_bind_text(fill.get(), 4, input.data(), static_cast<int>(input.size()), SQLITE_STATIC);
  db.exec("BEGIN IMMEDIATE");
  db.run(fill.get());
  db.exec("COMMIT");
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace hapax::bench
