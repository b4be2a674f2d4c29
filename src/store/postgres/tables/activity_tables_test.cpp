// What only a PostgreSQL store has of activities: plans, and statements that see what others have just done.
#include "store/postgres/tables/activity_tables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "store/postgres/connection/url.h"
#include "store/postgres/postgres_store.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/postgres_server.h"

namespace hapax::postgres {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Newer servers write the number with a fraction.
auto met(const std::string& part, int rows) {
  return testing::ContainsRegex(fmt::format("{} \\(actual rows={}(\\.00)? ", part, rows));
}

class PostgresActivities : public testing::Test {
 protected:
  PostgresActivities() {
    PostgresOptions options;
    options.url = url_;
    store_ = open_postgres_store(options, &clock_);
  }
  ~PostgresActivities() override {
    store_.reset();
    server_.drop_database(url_);
  }

  ActivityRows& activities() { return store_->activities(); }
  std::string sql(const std::string& text) { return server_.run(url_, text); }

  ActivityRow row(const std::string& id, std::int64_t revision) const {
    return {.name_space = "default",
            .id = id,
            .document = "{}",
            .by_event = false,
            .next_due = clock_.now(),
            .revision = revision};
  }
  bool put(const ActivityRow& row) {
    const ActivityChange change{row, false};
    return activities().change({&change, 1}).at(0);
  }

  ActivityRun run(Disposition disposition) const {
    ActivityRun run;
    run.name_space = "default";
    run.activity = "a";
    run.occurrence = "o";
    run.at = run.recorded_at = clock_.now();
    run.disposition = disposition;
    return run;
  }
  ActivityRun record(const ActivityRun& run) { return activities().record({&run, 1}).at(0); }

  // The plan with which the store runs it, and how many rows each part of it met.
  std::string plan_of(const Statement& statement, const Parameters& parameters) {
    const Url url = parse_url(url_);
    ConnectionOptions options;
    options.hosts = url.hosts;
    options.schema = url.schema;
    Connection connection(options);
    connection.begin();
    connection.send("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, SUMMARY OFF) " + statement.sql, parameters);
    const Rows rows = connection.receive();
    std::string plan;
    for (int i = 0; i < rows.size(); ++i) plan += Cells(rows, i).text() + "\n";
    connection.commit();
    return plan;
  }

  // Runs what waits for a row that `before` has locked in a transaction, which then ends with `after`.
  template <class Work>
  void while_held(const std::string& before, const std::string& after, Work work) {
    PGconn* other = PQconnectdb(url_.c_str());
    const auto run = [&](const std::string& text) { PQclear(PQexec(other, text.c_str())); };
    run("BEGIN");
    run(before);
    std::thread waiting(work);
    while (sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0") std::this_thread::yield();
    run(after);
    waiting.join();
    PQfinish(other);
  }

  ManualClock clock_;
  PostgresServer& server_ = PostgresServer::shared();
  const std::string url_ = server_.create_database();
  std::unique_ptr<Store> store_;
};

TEST_F(PostgresActivities, DueOnesAreFoundByTheirIndexHoweverManyThereAre) {
  for (int i = 0; i < 10; ++i) put(row("due-" + std::to_string(i), 0));
  for (const int count : {100, 100'000}) {
    sql(
        fmt::format("INSERT INTO hapax.activities SELECT 'default', convert_to({0} || '-' || i, 'UTF8'), '{{}}', false,"
                    " {1} + i, 1 FROM generate_series(1, {0}) i",
                    count, to_ms(clock_.now() + std::chrono::hours(24))));
    for (const bool analyzed : {false, true}) {
      if (analyzed) sql("ANALYZE hapax.activities");
      const std::string plan = plan_of(due_activities_statement(), Parameters().time(clock_.now()).int8(100));
      EXPECT_THAT(plan, Not(HasSubstr("Seq Scan"))) << plan;
      EXPECT_THAT(plan, met("using due_activities on activities", 10)) << plan;
      EXPECT_THAT(plan, met("using due_activities on activities activities_1", 1)) << plan;
    }
    const DueActivities due = activities().due(100);
    EXPECT_EQ(due.rows.size(), 10U);
    EXPECT_EQ(due.next_due, clock_.now() + std::chrono::hours(24) + Duration(1));
  }
}

TEST_F(PostgresActivities, PageOfRunsIsFoundByItsIndexHoweverManyThereAre) {
  const Parameters parameters = Parameters().bytes("default").bytes("a").time(clock_.now()).bytes("").int8(20);
  for (const int count : {0, 100, 100'000}) {
    sql(fmt::format(
        "INSERT INTO hapax.activity_runs SELECT sha256(convert_to({0} || '-' || i, 'UTF8')), 'default', 'a',"
        " convert_to({0} || '-' || i, 'UTF8'), 0, {1} - i, 0, 'w', NULL, NULL, NULL, '', {1}"
        " FROM generate_series(1, {0}) i",
        count, to_ms(clock_.now())));
    const std::string plan = plan_of(runs_statement(), parameters);
    EXPECT_THAT(plan, met("using activity_runs_by_time on activity_runs", std::min(count, 20))) << plan;
    EXPECT_THAT(plan, Not(HasSubstr("Sort"))) << plan;
  }
}

TEST_F(PostgresActivities, TimeIsTheServersWhereNoClockIsGiven) {
  PostgresOptions options;
  options.url = url_;
  const auto store = open_postgres_store(options);
  ActivityRow soon = row("soon", 0);
  soon.next_due = store->now() + std::chrono::hours(1);
  put(row("past", 0));
  put(soon);
  const DueActivities due = store->activities().due(10);
  EXPECT_THAT(due.rows, ElementsAre(row("past", 1)));
  EXPECT_EQ(due.next_due, soon.next_due);
  const ActivityRun asked = run(Disposition::ran);
  const Time recorded_at = store->activities().record({&asked, 1}).at(0).recorded_at;
  EXPECT_LT(std::chrono::abs(store->now() - recorded_at), std::chrono::minutes(1));
}

TEST_F(PostgresActivities, ChangeThatWaitsForAnotherLosesToIt) {
  put(row("a", 0));
  while_held("UPDATE hapax.activities SET revision = 2, document = '{1}'", "COMMIT",
             [&] { EXPECT_FALSE(put(row("a", 1))); });
  EXPECT_EQ(activities().find("default", "a")->document, "{1}");
}

TEST_F(PostgresActivities, ChangeThatWaitsForOneThatIsTakenBackIsMade) {
  put(row("a", 0));
  while_held("UPDATE hapax.activities SET revision = 2, document = '{1}'", "ROLLBACK",
             [&] { EXPECT_TRUE(put(row("a", 1))); });
  EXPECT_EQ(activities().find("default", "a"), row("a", 2));
}

TEST_F(PostgresActivities, DefinitionThatWaitsForARemovalIsMade) {
  put(row("a", 0));
  while_held("DELETE FROM hapax.activities", "COMMIT", [&] { EXPECT_TRUE(put(row("a", 0))); });
  EXPECT_EQ(activities().find("default", "a"), row("a", 1));
}

TEST_F(PostgresActivities, LostRaceForAFiringIsAnsweredWithTheWinner) {
  record(run(Disposition::ran));
  sql("CREATE TABLE theirs AS SELECT * FROM hapax.activity_runs; UPDATE theirs SET workflow_id = 'theirs';"
      " DELETE FROM hapax.activity_runs");
  while_held("INSERT INTO hapax.activity_runs SELECT * FROM theirs", "COMMIT",
             [&] { EXPECT_EQ(record(run(Disposition::skipped)).workflow_id, "theirs"); });
}

TEST_F(PostgresActivities, RowThatIsPurgedWhileARecordWaitsForItIsMadeAnew) {
  record(run(Disposition::skipped));
  while_held("DELETE FROM hapax.activity_runs", "COMMIT",
             [&] { EXPECT_EQ(record(run(Disposition::caught_up)), run(Disposition::caught_up)); });
  EXPECT_EQ(sql("SELECT count(*) FROM hapax.activity_runs"), "1");
}

}  // namespace
}  // namespace hapax::postgres
