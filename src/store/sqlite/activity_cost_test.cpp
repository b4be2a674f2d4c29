// Looking for what is due must not get slower with what is not: shown by counting SQLite's steps, not by a clock.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "store/sqlite/activity_tables.h"
#include "store/sqlite/schema.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace hapax::sqlite {
namespace {

class ActivityCost : public testing::Test {
 protected:
  ActivityCost() {
    prepare_schema(db);
    tables = std::make_unique<ActivityTables>(db);
  }

  // Half of them started by a schedule, and due tomorrow; the others by events, of which few are in the namespace
  // `few`.
  void define(int count) {
    db.exec(fmt::format(R"sql(
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0})
      INSERT INTO hapax_activities (name_space, id, by_event, next_due, revision, document)
      SELECT CASE WHEN i % 2 THEN 'few' ELSE 'many' END, {0} || '-' || i, i % 2 = 0, iif(i % 2, {1} + i, NULL), 1, '{{}}'
      FROM n)sql",
                        count, to_ms(clock.now() + std::chrono::hours(24)))
                .c_str());
  }

  // How many steps of SQLite's machine it takes.
  template <class Work>
  std::int64_t steps_of(Work work) {
    std::int64_t steps = 0;
    sqlite3_progress_handler(
        db.handle(), 1, [](void* count) { return ++*static_cast<std::int64_t*>(count), 0; }, &steps);
    work();
    sqlite3_progress_handler(db.handle(), 0, nullptr, nullptr);
    return steps;
  }

  void put(const std::string& id, std::optional<Time> next_due, bool by_event = false) {
    const ActivityRow row{
        .name_space = "few", .id = id, .document = "{}", .by_event = by_event, .next_due = next_due, .revision = 0};
    EXPECT_TRUE(tables->change({row, false}));
  }

  std::int64_t steps_of_due() {
    return steps_of([&] {
      const DueActivities due = tables->due(100, clock.now());
      EXPECT_EQ(due.rows.size(), 10U);
      EXPECT_TRUE(due.next_due);
    });
  }

  TempDir directory = TempDir::in_memory_if_possible();
  ManualClock clock;
  Connection db{ConnectionOptions{.path = directory.file("h.db"), .create = true}};
  std::unique_ptr<ActivityTables> tables;
};

TEST_F(ActivityCost, OfWhatIsDueIsTheSameAmongAHundredThousandAsAmongAHundred) {
  for (int i = 0; i < 10; ++i) put("due-" + std::to_string(i), clock.now() - Duration(i));
  define(100);
  const std::int64_t among_few = steps_of_due();
  define(100'000);
  const std::int64_t among_many = steps_of_due();
  RecordProperty("steps_among_100", static_cast<int>(among_few));
  RecordProperty("steps_among_100000", static_cast<int>(among_many));
  EXPECT_LE(among_many, among_few);
}

TEST_F(ActivityCost, OfTheOnesThatEventsStartIsThatOfTheirNumber) {
  for (int i = 0; i < 10; ++i) put("event-" + std::to_string(i), std::nullopt, true);
  define(100);
  const auto list = [&] {
    EXPECT_EQ(tables->list({.name_space = "few", .by_event = true, .after = "", .limit = 100}).size(), 10U);
  };
  const std::int64_t among_few = steps_of(list);
  define(100'000);
  EXPECT_LE(steps_of(list), among_few);
}

TEST_F(ActivityCost, OfAPageAndAPurgeIsTheSameInALongLedger) {
  const auto fill = [&](int count) {
    db.exec(fmt::format(R"sql(
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0})
      INSERT INTO hapax_activity_runs (name_space, activity, occurrence, cause, at, disposition, workflow_id, why, recorded_at)
      SELECT 'few', 'a', {0} || '-' || i, 0, {1} + i, 0, 'w', '', {1} + i FROM n)sql",
                        count, to_ms(clock.now()))
                .c_str());
  };
  const auto page = [&] {
    EXPECT_EQ(
        tables->runs({.name_space = "few", .activity = "a", .after = {{clock.now() + Duration(80), ""}}, .limit = 20})
            .size(),
        20U);
  };
  const auto purge = [&] { EXPECT_EQ(tables->purge_runs(clock.now() + std::chrono::hours(1), 10), 10); };
  fill(100);
  const std::int64_t page_of_few = steps_of(page), purge_of_few = steps_of(purge);
  fill(100'000);
  EXPECT_LE(steps_of(page), page_of_few);
  EXPECT_LE(steps_of(purge), purge_of_few);
}

}  // namespace
}  // namespace hapax::sqlite
