#include "conformance/postgres_home.h"

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
          "waits", "signals", "settings", "checks", "activities", "activity_runs"}) {
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
  explicit PostgresHome(bool pooled) : pooled_(pooled) {}
  ~PostgresHome() override {
    if (opened_) Databases::all().give_back(url_);
  }

  std::unique_ptr<Store> open(const Clock& clock) override {
    PostgresOptions options;
    options.url = pooled_ ? PostgresServer::shared().pooled(url_) : url_;
    auto store = open_postgres_store(options, &clock);
    opened_ = true;
    return store;
  }

 private:
  const bool pooled_;
  const std::string url_ = Databases::all().take();
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<StoreHome> make_postgres_home(bool pooled) { return std::make_unique<PostgresHome>(pooled); }

}  // namespace hapax
