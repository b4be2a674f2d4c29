#include "conformance/stores.h"

#include <fmt/format.h>

#include <cstdlib>

#include "conformance/cached_home.h"
#include "conformance/postgres_home.h"
#include "conformance/s3_home.h"
#include "conformance/s3_server_home.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_store.h"
#include "support/temp_dir.h"

namespace hapax {

void change_sqlite_payloads(const std::string& path, const std::string& from, const std::string& to) {
  constexpr const char* kPayloads[][2] = {{"executions", "input"},   {"executions", "result"},
                                          {"executions", "type"},    {"executions", "error_message"},
                                          {"large_inputs", "input"}, {"failed_attempts", "error_message"},
                                          {"events", "value"},       {"events", "error_message"},
                                          {"signals", "value"}};
  sqlite::Connection connection({.path = path, .create = false, .busy_timeout = Duration(20'000), .cache_kib = 100});
  for (const auto& [table, column] : kPayloads) {
    connection.exec(fmt::format("UPDATE hapax_{0} SET {1} = replace({1}, '{2}', '{3}') WHERE instr({1}, '{2}') > 0",
                                table, column, from, to)
                        .c_str());
  }
}

namespace {

class MemoryHome final : public StoreHome {
 public:
  std::unique_ptr<Store> open(const Clock& clock) override { return open_memory_store(clock); }
};

class SqliteHome final : public StoreHome {
 public:
  std::unique_ptr<Store> open(const Clock& clock) override {
    SqliteOptions options;
    options.path = dir_.file("hapax.db");
    return open_sqlite_store(options, clock);
  }

  bool change_payloads(const std::string& from, const std::string& to) override {
    change_sqlite_payloads(dir_.file("hapax.db"), from, to);
    return true;
  }

 private:
  TempDir dir_ = TempDir::in_memory_if_possible();
};

// Of PostgreSQL's shortcuts: all, or what the test run names.
std::string fast_switches() {
  const char* named = std::getenv("HAPAX_TEST_FAST");
  return named ? named : "all";
}

}  // namespace

std::vector<StoreKind> all_stores() {
  return {
      {"Memory", false, [] { return std::make_unique<MemoryHome>(); }},
      {"Sqlite", true, [] { return std::make_unique<SqliteHome>(); }},
      {"CachedSqlite", true, [] { return make_cached_home(false); }, 4},
      {"UnsteadilyCachedSqlite", true, [] { return make_cached_home(true); }, 4},
      {"Postgres", true, [] { return make_postgres_home(false, fast_switches()); }, 10},
      {"PostgresByTheRules", true, [] { return make_postgres_home(false, "none"); }, 40},
      {"PooledPostgres", true, [] { return make_postgres_home(true, "all"); }, 40},
      {"S3InMemory", true, [] { return make_s3_home(); }},
      {"S3", true, [] { return make_s3_server_home(); }, 200},
  };
}

std::vector<StoreKind> shared_stores() {
  std::vector<StoreKind> stores = all_stores();
  std::erase_if(stores, [](const StoreKind& store) { return !store.shared; });
  return stores;
}

std::vector<StoreKind> stores_that_hand_out() {
  std::vector<StoreKind> stores = all_stores();
  std::erase_if(stores, [](const StoreKind& store) { return store.name.starts_with("S3"); });
  return stores;
}

}  // namespace hapax
