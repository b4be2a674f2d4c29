// Submitting and starting inside a transaction of the caller's own, through the library, on both kinds of connection.
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "hapax/app.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"

namespace hapax::doors {
namespace {

using namespace std::chrono_literals;

// The application's own connection to the database that the app has open.
class OwnConnection {
 public:
  virtual ~OwnConnection() = default;
  virtual std::string url() const = 0;
  virtual void run(const std::string& sql) = 0;
  virtual AnyWorkflowHandle start(App& app, const std::string& workflow_id, int input) = 0;
  virtual AnyHandle submit(App& app, int input, const SubmitOptions& options) = 0;
};

class OwnSqlite final : public OwnConnection {
 public:
  OwnSqlite() {
    sqlite3_open(path_.c_str(), &connection_);
    sqlite3_busy_timeout(connection_, 10'000);
  }
  ~OwnSqlite() override { sqlite3_close(connection_); }

  std::string url() const override { return "sqlite:" + path_; }
  // A transaction that begins by reading could not write after another's commit.
  void run(const std::string& sql) override {
    const std::string begun = sql == "BEGIN" ? "BEGIN IMMEDIATE" : sql;
    if (sqlite3_exec(connection_, begun.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(connection_));
    }
  }
  AnyWorkflowHandle start(App& app, const std::string& workflow_id, int input) override {
    return app.start_in(connection_, "double", workflow_id, input);
  }
  AnyHandle submit(App& app, int input, const SubmitOptions& options) override {
    return app.submit_in(connection_, "add", input, options);
  }

 private:
  TempDir dir_;
  const std::string path_ = (dir_.path() / "app.db").string();
  sqlite3* connection_ = nullptr;
};

class OwnPostgres final : public OwnConnection {
 public:
  ~OwnPostgres() override {
    PQfinish(connection_);
    PostgresServer::shared().drop_database(url_);
  }

  std::string url() const override { return url_; }
  void run(const std::string& sql) override {
    PGresult* result = PQexec(connection_, sql.c_str());
    const bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!is_done) throw std::runtime_error(PQerrorMessage(connection_));
  }
  AnyWorkflowHandle start(App& app, const std::string& workflow_id, int input) override {
    return app.start_in(connection_, "double", workflow_id, input);
  }
  AnyHandle submit(App& app, int input, const SubmitOptions& options) override {
    return app.submit_in(connection_, "add", input, options);
  }

 private:
  const std::string url_ = PostgresServer::shared().create_database();
  PGconn* connection_ = PQconnectdb(url_.c_str());
};

class OwnTransaction : public testing::TestWithParam<std::string> {
 protected:
  OwnTransaction() {
    app_.workflow("double", [](Context& context, int number) { return 2 * context.run<int>("add", number); });
    app_.task("add", [](int number) { return number + 1; });
    own_->run("CREATE TABLE orders (id int)");
  }

  void work() { app_.work({.handle_signals = false, .until_idle_for = 100ms}); }

  const std::unique_ptr<OwnConnection> own_ = GetParam() == "sqlite"
                                                  ? std::unique_ptr<OwnConnection>(std::make_unique<OwnSqlite>())
                                                  : std::make_unique<OwnPostgres>();
  App app_ = open(own_->url());
};

TEST_P(OwnTransaction, AWorkflowRunsIfTheCallerCommits) {
  own_->run("BEGIN");
  own_->run("INSERT INTO orders VALUES (456)");
  const AnyWorkflowHandle handle = own_->start(app_, "order-456", 20);
  EXPECT_TRUE(handle.created());
  EXPECT_THROW(app_.find_workflow("order-456"), Error);
  own_->run("COMMIT");
  work();
  EXPECT_EQ(handle.result<int>(), 42);
}

TEST_P(OwnTransaction, NothingIsLeftIfTheCallerRollsBack) {
  own_->run("BEGIN");
  own_->start(app_, "order-456", 20);
  own_->run("ROLLBACK");
  work();
  EXPECT_THROW(app_.find_workflow("order-456"), Error);
  EXPECT_TRUE(app_.start("double", "order-456", 20).created());
}

TEST_P(OwnTransaction, StartedAgainItIsTheSameRun) {
  own_->run("BEGIN");
  const AnyWorkflowHandle first = own_->start(app_, "order-456", 20);
  const AnyWorkflowHandle second = own_->start(app_, "order-456", 20);
  EXPECT_FALSE(second.created());
  EXPECT_EQ(second.run_id(), first.run_id());
  own_->run("COMMIT");
  own_->run("BEGIN");
  EXPECT_EQ(own_->start(app_, "order-456", 20).run_id(), first.run_id());
  own_->run("COMMIT");
  EXPECT_EQ(app_.start("double", "order-456", 20).run_id(), first.run_id());
  work();
  own_->run("BEGIN");
  const AnyWorkflowHandle later = own_->start(app_, "order-456", 20);
  own_->run("COMMIT");
  EXPECT_EQ(later.run_id(), first.run_id());
  EXPECT_EQ(later.result<int>(), 42);
}

TEST_P(OwnTransaction, AnotherInputUnderTheIdIsAConflict) {
  const AnyWorkflowHandle first = app_.start("double", "order-456", 20);
  own_->run("BEGIN");
  try {
    own_->start(app_, "order-456", 21);
    FAIL() << "another input under the same workflow id";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "IdempotencyConflict");
    EXPECT_EQ(error.existing_execution_id(), first.run_id());
  }
  own_->run("INSERT INTO orders VALUES (1)");  // the caller's transaction goes on
  own_->run("COMMIT");
}

TEST_P(OwnTransaction, ATaskAndAWorkflowAreCommittedTogether) {
  own_->run("BEGIN");
  const AnyHandle task = own_->submit(app_, 1, key("add-1"));
  const AnyWorkflowHandle workflow = own_->start(app_, "order-456", 20);
  own_->run("COMMIT");
  work();
  EXPECT_EQ(task.result<int>(), 2);
  EXPECT_EQ(workflow.result<int>(), 42);
}

TEST_P(OwnTransaction, WhatIsInvalidIsRefusedAsElsewhere) {
  own_->run("BEGIN");
  for (const auto& start : std::vector<std::function<void()>>{[&] { own_->start(app_, " ", 1); },
                                                              [&] { own_->start(app_, std::string(256, 'x'), 1); }}) {
    try {
      start();
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "InvalidRequest");
      EXPECT_EQ(error.pointer(), "/workflow_id");
    }
  }
  own_->run("ROLLBACK");
}

INSTANTIATE_TEST_SUITE_P(Connections, OwnTransaction, testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hapax::doors
