// A list costs what its own namespace has: shown by counting SQLite's steps, not by a clock.

#include <gmock/gmock.h>

#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_rows.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax::sqlite {
namespace {

// To meet another queue's row behind one's own is a step more than to meet the end of the index.
constexpr std::int64_t kEndOfAnIndex = 10;

class ListCost : public testing::Test {
 protected:
  ListCost() {
    auto connection = std::make_unique<Connection>(ConnectionOptions{.path = directory.file("h.db"), .create = true});
    prepare_schema(*connection);
    tables = std::make_unique<Tables>(std::move(connection));
  }

  Connection& db() { return tables->connection(); }

  void submit(const Submission& submission) {
    Batch batch{*tables, policies, clock.now()};
    SqliteRows(batch).submit(submission);
  }

  // Thousands of another namespace's, newer than all that is there, in every status and with the same key and type.
  void crowd(const std::string& name_space) {
    const Batch batch{*tables, policies, clock.now()};
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      const std::int64_t queue_no = batch.tables.queue_no(name_space, "work", kind);
      Statement statement(db(), R"sql(
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO hapax_executions (state_sum, fact_sum, awaited, step, parent_workflow_id, id, queue_no, kind, status, priority, run_at, attempt, attempt_limit, max_attempts,
          retry_initial_ms, retry_factor, retry_max_ms, created_at, finished_at, worker, type, key_hash, idempotency_key,
          input_hash, input)
        SELECT 0, 0, 0, 0, '', randomblob(16), ?1, ?2, i % 7, 0, 0, 1, 3, 3, 1000, 2, 60000, 0, CASE WHEN i % 7 > 2 THEN i END, 'w', 't',
          ?3, 'k', zeroblob(32), '1' FROM n)sql");
      sqlite::Run(statement).bind(queue_no).bind(kind).bind(key_hash("k")).done();
    }
  }

  template <class Read>
  std::int64_t steps_of(Read read) {
    std::int64_t steps = 0;
    sqlite3_progress_handler(
        db().handle(), 1, [](void* count) { return ++*static_cast<std::int64_t*>(count), 0; }, &steps);
    read();
    sqlite3_progress_handler(db().handle(), 0, nullptr, nullptr);
    return steps;
  }

  static ListFilter of(const std::string& name_space) {
    ListFilter filter;
    filter.name_space = name_space;
    return filter;
  }

  static std::vector<ListFilter> every_filter() {
    std::vector<ListFilter> filters;
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      ListFilter plain = of("mine");
      plain.kind = kind;
      filters.push_back(plain);
      filters.emplace_back(plain).queue = "work";
      filters.emplace_back(plain).type = "t";
      filters.emplace_back(plain).idempotency_key = "k";
      filters.emplace_back(plain).parent = test_id(99);
      for (int status = 0; status < 7; ++status) filters.emplace_back(plain).status = static_cast<Status>(status);
    }
    return filters;
  }

  TempDir directory = TempDir::in_memory_if_possible();
  ManualClock clock;
  QueuePolicies policies;
  std::unique_ptr<Tables> tables;
};

TEST_F(ListCost, IsTheSameBesideTensOfThousandsOfAnotherNamespaces) {
  submit(Task("t").key("k").name_space("mine"));
  submit(Task("t").key("k").name_space("mine").kind(Kind::workflow));
  std::vector<std::int64_t> alone, beside;
  for (const ListFilter& filter : every_filter()) alone.push_back(steps_of([&] { list(*tables, filter); }));
  crowd("theirs");
  for (const ListFilter& filter : every_filter()) beside.push_back(steps_of([&] { list(*tables, filter); }));
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_LE(beside[i], alone[i] + kEndOfAnIndex) << "filter " << i;
}

TEST_F(ListCost, OfAForeignRunIsNothing) {
  submit(Task("w").name_space("theirs").kind(Kind::workflow).id(test_id(1)));
  for (int i = 0; i < 200; ++i) submit(Task("t").name_space("theirs").parent(test_id(1)));
  ListFilter filter = of("mine");
  filter.parent = test_id(1);
  EXPECT_LE(steps_of([&] { EXPECT_TRUE(list(*tables, filter).empty()); }), 200);
}

TEST_F(ListCost, CountOfQueuesIsTheSameBesideAnotherNamespaces) {
  submit(Task("t").name_space("mine"));
  const std::int64_t alone = steps_of([&] { count(*tables, "mine"); });
  crowd("theirs");
  EXPECT_LE(steps_of([&] { count(*tables, "mine"); }), alone + kEndOfAnIndex);
}

}  // namespace
}  // namespace hapax::sqlite
