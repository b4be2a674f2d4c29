#include "conformance/postgres_home.h"

#include <fmt/format.h>

#include <mutex>

#include "store/postgres/postgres_store.h"
#include "support/postgres_server.h"

namespace hapax {

namespace {

// Databases that nobody uses at the moment: to empty one is quicker than to make one.
class Databases {
 public:
  std::string take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return PostgresServer::shared().create_database();
    std::string url = std::move(idle_.back());
    idle_.pop_back();
    return url;
  }

  void give_back(std::string url) {
    std::string sql;
    for (const char* table :
         {"queues", "executions", "open", "closed", "identities", "tombstones", "requests", "closing_reports", "events",
          "waits", "signals", "settings", "checks", "activities", "activity_runs", "workers"}) {
      sql += std::string("DELETE FROM hapax.") + table + ";";
    }
    PostgresServer::shared().run(url, sql);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(url));
  }

  static Databases& all() {
    static Databases databases;
    return databases;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> idle_;
};

class PostgresHome final : public StoreHome {
 public:
  PostgresHome(bool pooled, std::string fast) : pooled_(pooled), fast_(std::move(fast)) {}
  ~PostgresHome() override {
    if (opened_) Databases::all().give_back(url_);
  }

  std::unique_ptr<Store> open(const Clock& clock) override {
    PostgresOptions options;
    options.url = pooled_ ? PostgresServer::shared().pooled(url_) : url_;
    const bool has_query = options.url.find('?') != std::string::npos;
    options.url += (has_query ? "&fast=" : "?fast=") + fast_;
    auto store = open_postgres_store(options, &clock);
    opened_ = true;
    return store;
  }

  bool change_payloads(const std::string& from, const std::string& to) override {
    constexpr const char* kPayloads[][2] = {
        {"executions", "input"},     {"executions", "type"},        {"executions", "done_result"},
        {"open", "error_message"},   {"open", "failed_attempts"},   {"closed", "result"},
        {"closed", "error_message"}, {"closed", "failed_attempts"}, {"events", "value"},
        {"events", "error_message"}, {"signals", "value"}};
    for (const auto& [table, column] : kPayloads) {
      PostgresServer::shared().run(
          url_,
          fmt::format("UPDATE hapax.{0} SET {1} = overlay({1} PLACING '{3}'::bytea FROM position('{2}'::bytea IN {1}))"
                      " WHERE position('{2}'::bytea IN {1}) > 0",
                      table, column, from, to));
    }
    return true;
  }

 private:
  const bool pooled_;
  const std::string fast_;
  const std::string url_ = Databases::all().take();
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<StoreHome> make_postgres_home(bool pooled, const std::string& fast) {
  return std::make_unique<PostgresHome>(pooled, fast);
}

}  // namespace hapax
