// once_in(): one row and one result in the caller's own database, although the worker dies before or after the commit,
// or loses its lease in between.
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "core/effects_table.h"
#include "hapax/app.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

// The application's own database, with the table of its bookings.
class Own {
 public:
  virtual ~Own() = default;
  virtual void open() = 0;  // a connection of this process
  virtual void run(const std::string& sql) = 0;
  virtual int number(const std::string& sql) = 0;
  virtual int once_in(const TaskContext& context, const std::function<int(int)>& book, int order) = 0;
  virtual EffectsDialect dialect() const = 0;

  void create_tables() {
    run(std::string(effects_table_sql(dialect())));
    run("CREATE TABLE booked (id integer)");
  }
  int book(int order) {
    run("INSERT INTO booked VALUES (" + std::to_string(order) + ")");
    return order + number("SELECT count(*) FROM booked");
  }
};

class OwnSqlite final : public Own {
 public:
  ~OwnSqlite() override { sqlite3_close(connection_); }
  void open() override {
    sqlite3_open(path_.c_str(), &connection_);
    sqlite3_busy_timeout(connection_, 20'000);
  }
  void run(const std::string& sql) override {
    const std::string begun = sql == "BEGIN" ? "BEGIN IMMEDIATE" : sql;
    if (sqlite3_exec(connection_, begun.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(connection_));
    }
  }
  int number(const std::string& sql) override {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement, nullptr);
    sqlite3_step(statement);
    const int number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return number;
  }
  int once_in(const TaskContext& context, const std::function<int(int)>& book, int order) override {
    return context.once_in(connection_, book, order);
  }
  EffectsDialect dialect() const override { return EffectsDialect::sqlite; }

 private:
  TempDir dir_;
  const std::string path_ = (dir_.path() / "own.db").string();
  sqlite3* connection_ = nullptr;
};

class OwnPostgres final : public Own {
 public:
  ~OwnPostgres() override {
    PQfinish(connection_);
    PostgresServer::shared().drop_database(url_);
  }
  void open() override { connection_ = PQconnectdb(url_.c_str()); }
  void run(const std::string& sql) override {
    PGresult* result = PQexec(connection_, sql.c_str());
    const bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!is_done) throw std::runtime_error(PQerrorMessage(connection_));
  }
  int number(const std::string& sql) override {
    PGresult* result = PQexec(connection_, sql.c_str());
    const int number = std::stoi(PQgetvalue(result, 0, 0));
    PQclear(result);
    return number;
  }
  int once_in(const TaskContext& context, const std::function<int(int)>& book, int order) override {
    return context.once_in(connection_, book, order);
  }
  EffectsDialect dialect() const override { return EffectsDialect::postgres; }

 private:
  const std::string url_ = PostgresServer::shared().create_database();
  PGconn* connection_ = nullptr;
};

enum class Dies { before_the_commit, after_the_commit, stands_still_before_the_commit };

class OnceIn : public testing::TestWithParam<bool> {
 protected:
  OnceIn() : own_(GetParam() ? std::unique_ptr<Own>(new OwnPostgres) : std::unique_ptr<Own>(new OwnSqlite)) {}

  // In a process of its own, before this one has any thread: it works on the task, and never comes back.
  pid_t start_worker(Dies dies) {
    const pid_t child = fork();
    if (child != 0) return child;
    try {
      own_->open();
      own_->create_tables();
      App app = open(url_);
      app.task("book", [&](TaskContext& context, const int& order) {
        own_->run("BEGIN");
        const int entry = own_->once_in(context, [&](int each) { return own_->book(each); }, order);
        if (dies == Dies::before_the_commit) _exit(9);
        if (dies == Dies::stands_still_before_the_commit) raise(SIGSTOP);
        own_->run("COMMIT");
        _exit(9);
        return entry;
      });
      app.submit("book", 7, key("k"));
      app.work({.lease = 1s});
    } catch (const std::exception& error) {
      fprintf(stderr, "the worker failed: %s\n", error.what());
    }
    _exit(1);
  }

  // The next attempt, here. `before` is called in its handler.
  int work_on(const std::function<void()>& before = [] {}) {
    own_->open();
    App app = open(url_);
    int attempt = 0;
    app.task("book", [&](TaskContext& context, const int& order) {
      attempt = context.attempt();
      before();
      own_->run("BEGIN");
      const int entry = own_->once_in(context, [&](int each) { return own_->book(each); }, order);
      own_->run("COMMIT");
      return entry;
    });
    const AnyHandle handle = app.submit("book", 7, key("k"));
    std::thread worker([&] { app.work({.handle_signals = false}); });
    const int result = handle.result<int>();
    app.stop();
    worker.join();
    EXPECT_EQ(attempt, 2);
    EXPECT_EQ(own_->number("SELECT count(*) FROM booked"), 1);
    EXPECT_EQ(own_->number("SELECT count(*) FROM hapax_effects"), 1);
    return result;
  }

  TempDir dir_;
  const std::string url_ = "sqlite:" + (dir_.path() / "jobs.db").string();
  const std::unique_ptr<Own> own_;
};
INSTANTIATE_TEST_SUITE_P(Databases, OnceIn, testing::Bool(),
                         [](const auto& info) { return info.param ? "Postgres" : "Sqlite"; });

TEST_P(OnceIn, KilledBeforeTheCommitItHappensInTheNextAttempt) {
  const pid_t worker = start_worker(Dies::before_the_commit);
  int status = 0;
  waitpid(worker, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(work_on(), 8);
}

TEST_P(OnceIn, KilledAfterTheCommitTheNextAttemptGetsItsResult) {
  const pid_t worker = start_worker(Dies::after_the_commit);
  int status = 0;
  waitpid(worker, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(work_on(), 8);
}

TEST_P(OnceIn, AWorkerThatLostItsLeaseCommitsAndTheNextAttemptGetsItsResult) {
  const pid_t worker = start_worker(Dies::stands_still_before_the_commit);
  int status = 0;
  waitpid(worker, &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(work_on([&] { kill(worker, SIGCONT); }), 8);
  waitpid(worker, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

// What does not need a second process: the handler runs in an app in memory.
class OnceInHandler : public OnceIn {
 protected:
  // The result of a task whose handler calls this, or what it threw.
  std::string run(const std::function<int(const TaskContext&)>& handler) {
    own_->open();
    own_->create_tables();
    App app = open("memory:");
    app.task("t", [&](TaskContext& context) { return handler(context); }, {.max_attempts = 1});
    const AnyHandle handle = app.submit("t", nullptr);
    app.work({.handle_signals = false, .until_idle_for = 50ms});
    try {
      return std::to_string(handle.result<int>());
    } catch (const TaskFailed& failed) {
      return failed.what();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Databases, OnceInHandler, testing::Bool(),
                         [](const auto& info) { return info.param ? "Postgres" : "Sqlite"; });

TEST_P(OnceInHandler, WhatThrowsLeavesNothing) {
  const auto thrown = run([&](const TaskContext& context) {
    own_->run("BEGIN");
    try {
      own_->once_in(context, [&](int order) -> int { throw std::runtime_error(std::to_string(own_->book(order))); }, 1);
    } catch (const std::runtime_error&) {}
    const int rows = own_->number("SELECT count(*) FROM booked");
    const int entry = own_->once_in(context, [&](int order) { return own_->book(order); }, 1);
    own_->run("COMMIT");
    return 10 * rows + entry;
  });
  EXPECT_EQ(thrown, "2") << "the second try runs, on an empty table";
  EXPECT_EQ(own_->number("SELECT count(*) FROM hapax_effects"), 1);
}

TEST_P(OnceInHandler, WithoutATransactionItSaysWhatToDo) {
  const auto thrown =
      run([&](const TaskContext& context) { return own_->once_in(context, [](int order) { return order; }, 1); });
  EXPECT_NE(thrown.find("begin one"), std::string::npos) << thrown;
}

TEST_P(OnceInHandler, WithoutTheTableItSaysWhatToDo) {
  const auto thrown = run([&](const TaskContext& context) {
    own_->run("DROP TABLE hapax_effects");
    own_->run("BEGIN");
    return own_->once_in(context, [](int order) { return order; }, 1);
  });
  EXPECT_NE(thrown.find("hapax effects --sql"), std::string::npos) << thrown;
}

}  // namespace
}  // namespace hapax
