// Claiming must not get slower with what is closed: shown by counting SQLite's steps, not by a clock.

#include <gmock/gmock.h>

#include "store/rules/finish.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_rows.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax::sqlite {
namespace {

class ClaimCost : public testing::Test {
 protected:
  ClaimCost() {
    auto connection = std::make_unique<Connection>(ConnectionOptions{.path = directory.file("h.db"), .create = true});
    prepare_schema(*connection);
    tables = std::make_unique<Tables>(std::move(connection));
  }

  Connection& db() { return tables->connection(); }

  void submit(int count) {
    Batch batch{*tables, policies, clock.now()};
    for (int i = 0; i < count; ++i) SqliteRows(batch).submit(Task("t").key("k" + std::to_string(submitted++)));
  }

  // How many steps of SQLite's machine it takes to claim 10 tasks and to finish them.
  std::int64_t steps_of_a_cycle(const std::vector<std::string>& types = {}) {
    Claim claim(db());
    Batch batch{*tables, policies, clock.now()};
    const ClaimRequest request{.name_space = "default",
                               .queues = {"work"},
                               .types = types,
                               .limit = 10,
                               .worker = "w",
                               .secret = test_secret(1)};
    steps = 0;
    sqlite3_progress_handler(
        db().handle(), 1, [](void* count) { return ++*static_cast<std::int64_t*>(count), 0; }, &steps);
    const ClaimOutcome outcome = claim(batch, request);
    for (const Execution& execution : outcome.executions) {
      SqliteRows rows(batch);
      rules::finish(rows, {token_of(execution), Report::Completed{"1"}});
    }
    sqlite3_progress_handler(db().handle(), 0, nullptr, nullptr);
    EXPECT_EQ(outcome.executions.size(), 10U);
    return steps;
  }

  void expect_no_scan(const std::string& sql) {
    Statement statement(db(), "EXPLAIN QUERY PLAN " + sql);
    sqlite::Run run(statement);
    while (run.next()) EXPECT_THAT(std::string(run.text(3)), testing::StartsWith("SEARCH")) << sql;
  }

  TempDir directory = TempDir::in_memory_if_possible();
  ManualClock clock;
  QueuePolicies policies;
  std::unique_ptr<Tables> tables;
  int submitted = 0;
  std::int64_t steps = 0;
};

TEST_F(ClaimCost, IsTheSameWithTwoHundredThousandClosedExecutions) {
  submit(20);
  const std::int64_t alone = steps_of_a_cycle();

  db().exec(R"sql(
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO hapax_executions (state_sum, fact_sum, awaited, step, parent_workflow_id, id, queue_no, kind, status, priority, run_at, attempt, attempt_limit, max_attempts,
      retry_initial_ms, retry_factor, retry_max_ms, created_at, finished_at, worker, type, input_hash, input)
    SELECT 0, 0, 0, 0, '', randomblob(16), 1, 0, 3, 0, 0, 1, 3, 3, 1000, 2, 60000, 0, i, 'w', 't', zeroblob(32), '1' FROM n)sql");
  const std::int64_t among_many = steps_of_a_cycle();
  EXPECT_LE(among_many, alone + alone / 20);
}

// Before and behind it, and with a higher priority: by type, by time and by priority.
TEST_F(ClaimCost, IsTheSameWithTwoHundredThousandThatWaitOfOtherTypes) {
  submit(60);
  const std::int64_t alone = steps_of_a_cycle({"t"});
  const std::int64_t alone_of_two = steps_of_a_cycle({"t", "none"});

  db().exec(R"sql(
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO hapax_executions (state_sum, fact_sum, awaited, step, parent_workflow_id, id, queue_no, kind, status, priority, run_at, attempt, attempt_limit, max_attempts,
      retry_initial_ms, retry_factor, retry_max_ms, created_at, worker, type, input_hash, input)
    SELECT 0, 0, 0, 0, '', randomblob(16), 1, 0, 0, i % 2, i, 0, 3, 3, 1000, 2, 60000, 0, '',
      CASE i % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'other' ELSE 'z' END, zeroblob(32), '1' FROM n)sql");
  EXPECT_LE(steps_of_a_cycle({"t"}), alone + alone / 10);
  EXPECT_LE(steps_of_a_cycle({"t", "none"}), alone_of_two + alone_of_two / 10);
}

TEST_F(ClaimCost, NeverScansATable) {
  expect_no_scan("SELECT e.seq FROM hapax_executions e WHERE e.id = ?");
  expect_no_scan(
      "SELECT id FROM hapax_executions INDEXED BY hapax_due WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, "
      "id");
  expect_no_scan(
      "SELECT run_at, id, seq FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0 AND "
      "queue_no = ?"
      " AND type = ? AND priority = ? AND run_at <= ? AND (run_at, id) > (?, ?) ORDER BY run_at, id LIMIT ?");
  expect_no_scan(
      "SELECT priority FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0 AND queue_no = ? "
      "AND type = ? AND priority < ? ORDER BY priority DESC LIMIT 1");
  expect_no_scan(
      "SELECT type FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0 AND queue_no = ? "
      "AND type > ? ORDER BY type LIMIT 1");
  expect_no_scan(
      "SELECT e.seq FROM hapax_executions e INDEXED BY hapax_closed WHERE e.finished_at IS NOT NULL AND e.queue_no = ? "
      "AND e.kind "
      "= ?"
      " AND e.finished_at <= ? ORDER BY e.finished_at, e.id LIMIT ?");
}

}  // namespace
}  // namespace hapax::sqlite
