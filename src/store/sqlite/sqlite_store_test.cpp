#include "store/sqlite/sqlite_store.h"

#include <gmock/gmock.h>

#include <future>
#include <set>
#include <thread>

#include "store/sqlite/connection.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

class SqliteStore : public testing::Test {
 protected:
  std::unique_ptr<Store> open(Duration timeout = Duration(20'000)) {
    return open_sqlite_store({.path = path, .timeout = timeout}, clock);
  }

  static SubmitOutcome submit(Store& store, const Submission& submission) {
    return store.submit(std::span(&submission, 1)).at(0);
  }

  ClaimOutcome claim(Store& store, std::int32_t limit, std::vector<std::string> queues = {"work"}) {
    const ClaimRequest request{.name_space = "default",
                               .queues = std::move(queues),
                               .limit = limit,
                               .worker = "w",
                               .secret = test_secret(++secrets)};
    return store.claim(std::span(&request, 1)).at(0);
  }

  static FinishOutcome finish(Store& store, const Execution& claimed) {
    const Report report{token_of(claimed), Report::Completed{"1"}};
    return store.finish(std::span(&report, 1)).at(0);
  }

  static void set_policy(Store& store, const QueuePolicy& policy) {
    auto policies = std::make_shared<QueuePolicies>();
    policies->set("default", "work", policy);
    store.set_policies(policies);
  }

  std::int64_t count(const std::string& what) {
    sqlite::Connection connection({.path = path});
    return connection.read_integer(("SELECT count(*) FROM " + what).c_str());
  }

  TempDir directory = TempDir::in_memory_if_possible();
  std::string path = directory.file("hapax.db");
  ManualClock clock;
  std::uint64_t secrets = 0;
};

TEST_F(SqliteStore, AReadEndsAtItsDeadline) {
  const auto store = open();
  std::vector<Submission> tasks;
  for (std::uint64_t n = 1; n <= 5000; ++n) tasks.push_back(Task().id(test_id(n)));
  store->submit(tasks);
  ListFilter filter;
  filter.name_space = "default";
  filter.type = "another";
  EXPECT_TRUE(store->list(filter).empty());
  {
    const CallDeadline deadline(Duration(0));
    try {
      store->list(filter);
      ADD_FAILURE() << "it went on";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::unavailable);
      EXPECT_THAT(failure.what(), testing::HasSubstr("it took too long"));
    }
    EXPECT_EQ(store->inspect("", 100).checked, 100) << "which reads everything, however long that takes";
  }
  EXPECT_TRUE(store->list(filter).empty()) << "the next one has a deadline of its own";
}

// A statement that never ends of itself.
class EndlessStatement : public SqliteStore {
 protected:
  std::string run() {
    try {
      connection_.read_integer(
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::unavailable);
      EXPECT_FALSE(connection_.broken());
      return failure.what();
    }
    return "";
  }

  std::atomic<bool> interrupted_ = false;
  sqlite::Connection connection_{{.path = path, .create = true, .interrupted = &interrupted_}};
};

TEST_F(EndlessStatement, EndsAtItsDeadline) {
  connection_.end_statements_at(CallDeadline::Clock::now() + std::chrono::milliseconds(20));
  EXPECT_THAT(run(), testing::HasSubstr("it took too long"));
}

TEST_F(EndlessStatement, EndsWithTheProgram) {
  auto running = std::async(std::launch::async, [&] { return run(); });
  EXPECT_EQ(running.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  interrupted_ = true;
  EXPECT_THAT(running.get(), testing::HasSubstr("this program is ending"));
}

TEST_F(SqliteStore, SubmittingInATransactionThatSqliteRollsBackSaysSo) {
  open();
  sqlite::Connection own({.path = path});
  own.exec("PRAGMA max_page_count = 1");  // full: as large as it is
  own.exec("BEGIN IMMEDIATE; INSERT INTO hapax_checks (only_one, checked_at) VALUES (1, 5)");
  try {
    const Submission large = Task().input('"' + std::string(1'000'000, 'x') + '"');
    submit_in_transaction(own.handle(), large, QueuePolicies(), clock.now());
    FAIL() << "it fitted";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("rolled back your whole transaction"));
    EXPECT_TRUE(sqlite3_get_autocommit(own.handle()));
  }
}

TEST_F(SqliteStore, EveryRaiseOfALimitFreesWhatWasParked) {
  auto store = open();
  for (int i = 0; i < 3; ++i) submit(*store, Task().concurrency_key("k"));
  QueuePolicy policy;
  for (policy.concurrency_limit = 1; policy.concurrency_limit <= 3; ++policy.concurrency_limit) {
    set_policy(*store, policy);
    EXPECT_EQ(claim(*store, 3).executions.size(), 1u);
    EXPECT_EQ(claim(*store, 3).executions.size(), 0u);
  }
}

TEST_F(SqliteStore, TwoOnOneFileCreateEachKeyOnceAndClaimEachTaskOnce) {
  constexpr int kKeys = 100;
  const std::unique_ptr<Store> stores[] = {open(), open()};
  std::atomic<int> created = 0, claimed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Store& store = *stores[t % 2];
      for (int i = 0; i < kKeys; i += 10) {
        std::vector<Submission> batch;
        for (int k = i; k < i + 10; ++k) batch.push_back(Task().key("key-" + std::to_string(k)));
        for (const SubmitOutcome& outcome : store.submit(batch))
          created += outcome.kind == SubmitOutcome::Kind::created;
        const ClaimRequest request{.name_space = "default",
                                   .queues = {"work"},
                                   .limit = 7,
                                   .worker = "w",
                                   .secret = test_secret(static_cast<std::uint64_t>(t * kKeys + i))};
        const ClaimOutcome mine = store.claim(std::span(&request, 1)).at(0);
        for (const Execution& execution : mine.executions) claimed += finish(store, execution).accepted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  claimed += static_cast<int>(claim(*stores[0], kKeys).executions.size());
  EXPECT_EQ(created, kKeys);
  EXPECT_EQ(claimed, kKeys);
}

TEST_F(SqliteStore, ReadersDoNotEndEachOthersSnapshots) {
  constexpr int kReaders = 8, kReads = 40000;
  const auto store = open();
  const ExecutionId id = submit(*store, Task()).execution.id;
  std::vector<std::future<int>> found;
  for (int reader = 0; reader < kReaders; ++reader) {
    found.push_back(std::async(std::launch::async, [&] {
      int times = 0;
      for (int i = 0; i < kReads; ++i) times += store->find("default", id) ? 1 : 0;
      return times;
    }));
  }
  for (auto& times : found) EXPECT_EQ(times.get(), kReads);
}

TEST_F(SqliteStore, WatchHearsOfTheOthersCommit) {
  auto mine = open(), other = open();
  std::promise<void> heard;
  std::atomic<bool> once = false;
  mine->watch([&] {
    if (!once.exchange(true)) heard.set_value();
  });
  submit(*other, Task());
  EXPECT_EQ(heard.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  mine->watch({});
}

TEST_F(SqliteStore, WatchDoesNotHearOfItsOwnCommits) {
  auto mine = open(), other = open();
  std::atomic<int> calls = 0;
  std::promise<void> heard;
  mine->watch([&] {
    if (++calls == 1) heard.set_value();
  });
  for (int i = 0; i < 50; ++i) submit(*mine, Task());
  EXPECT_EQ(calls, 0);
  submit(*other, Task());
  EXPECT_EQ(heard.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  mine->watch({});
  EXPECT_EQ(calls, 1);
}

TEST_F(SqliteStore, WaitsForAnothersTransactionAndThenSaysWhoIsInTheWay) {
  auto store = open(Duration(30));
  sqlite::Connection other({.path = path});
  other.exec("BEGIN IMMEDIATE");
  try {
    submit(*store, Task());
    ADD_FAILURE() << "it was submitted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::unavailable);
    EXPECT_THAT(failure.what(), testing::HasSubstr("another process"));
  }
  other.exec("COMMIT");
  EXPECT_EQ(submit(*store, Task()).kind, SubmitOutcome::Kind::created);
}

TEST_F(SqliteStore, LargeInputsAreKeptApartAndGoWithTheirExecution) {
  auto store = open();
  QueuePolicy policy;
  policy.retention = Duration::zero();
  set_policy(*store, policy);
  const std::string input = '"' + std::string(100'000, 'x') + '"';
  submit(*store, Task().id(test_id(1)).input(input));
  EXPECT_EQ(store->find("default", test_id(1))->input, input);
  const ClaimOutcome outcome = claim(*store, 1);
  const Execution& claimed = outcome.executions.at(0);
  EXPECT_EQ(claimed.input, input);
  EXPECT_EQ(count("hapax_large_inputs"), 1);
  EXPECT_EQ(finish(*store, claimed).purged->input, input);
  EXPECT_EQ(count("hapax_large_inputs"), 0);
}

TEST_F(SqliteStore, RetentionOfNothingLeavesNoRow) {
  auto store = open();
  QueuePolicy policy;
  policy.retention = Duration::zero();
  set_policy(*store, policy);
  for (int i = 0; i < 3; ++i) submit(*store, Task().key("k" + std::to_string(i)));
  for (const Execution& execution : claim(*store, 3).executions) EXPECT_TRUE(finish(*store, execution).purged);
  EXPECT_EQ(count("hapax_executions"), 0);
  EXPECT_EQ(count("hapax_identities"), 0);
}

TEST_F(SqliteStore, TasksOfASaturatedKeyAreParkedAndFreedOneByOne) {
  auto store = open();
  for (int i = 0; i < 5; ++i) submit(*store, Task().concurrency_key("k"));
  const ClaimOutcome first = claim(*store, 10);
  ASSERT_EQ(first.executions.size(), 1U);
  EXPECT_FALSE(first.next_at);
  EXPECT_EQ(count("hapax_executions WHERE parked = 1"), 4);
  EXPECT_EQ(store->count().at(0).pending, 4);

  finish(*store, first.executions[0]);
  EXPECT_EQ(count("hapax_executions WHERE parked = 1"), 3);
  EXPECT_EQ(claim(*store, 10).executions.size(), 1U);
}

TEST_F(SqliteStore, CancellingTheFreedTaskFreesTheNext) {
  auto store = open();
  for (std::uint64_t i = 1; i <= 3; ++i) submit(*store, Task().id(test_id(i)).concurrency_key("k"));
  const auto running = claim(*store, 10).executions;
  finish(*store, running.at(0));
  ControlRequest cancel;
  cancel.name_space = "default";
  cancel.request_key = "r";
  cancel.target = test_id(2);
  store->control(std::span(&cancel, 1));
  const auto next = claim(*store, 10).executions;
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].id, test_id(3));
}

TEST_F(SqliteStore, RaisedConcurrencyLimitFreesWhatIsParked) {
  auto store = open();
  for (int i = 0; i < 5; ++i) submit(*store, Task().concurrency_key("k"));
  EXPECT_EQ(claim(*store, 10).executions.size(), 1U);
  QueuePolicy policy;
  policy.concurrency_limit = 3;
  set_policy(*store, policy);
  EXPECT_EQ(claim(*store, 10).executions.size(), 2U);
}

TEST_F(SqliteStore, SweepFreesParkedTasksThatWereForgotten) {
  auto store = open();
  for (int i = 0; i < 3; ++i) submit(*store, Task().concurrency_key("k"));
  const auto running = claim(*store, 10).executions;
  finish(*store, running.at(0));
  sqlite::Connection({.path = path}).exec("UPDATE hapax_executions SET parked = 1 WHERE status = 0");
  EXPECT_TRUE(claim(*store, 10).executions.empty());
  store->sweep(100);
  EXPECT_EQ(claim(*store, 10).executions.size(), 1U);
}

TEST_F(SqliteStore, DelayedTasksOfHighPriorityDoNotHideTheOthers) {
  auto store = open();
  for (int i = 0; i < 200; ++i) submit(*store, Task().priority(5).delay(Duration(60'000 + i)));
  submit(*store, Task().id(test_id(1)).priority(1));
  submit(*store, Task().id(test_id(2)).priority(3));
  const ClaimOutcome outcome = claim(*store, 10);
  ASSERT_EQ(outcome.executions.size(), 2U);
  EXPECT_EQ(outcome.executions[0].id, test_id(2));
  EXPECT_EQ(outcome.executions[1].id, test_id(1));
  EXPECT_EQ(outcome.next_at, clock.now() + Duration(60'000));
}

TEST_F(SqliteStore, ListsByKeyEvenWhereTwoKeysShareTheirHash) {
  auto store = open();
  submit(*store, Task().id(test_id(1)).key("costarring"));  // FNV-1a gives both the same 32 bits
  submit(*store, Task().id(test_id(2)).key("liquid"));
  ListFilter filter;
  filter.name_space = "default";
  filter.idempotency_key = "liquid";
  const auto found = store->list(filter);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, test_id(2));
}

TEST_F(SqliteStore, DryRunLeavesNothingBehind) {
  auto store = open();
  EXPECT_EQ(submit(*store, Task().key("a").dry_run()).kind, SubmitOutcome::Kind::created);
  EXPECT_EQ(count("hapax_executions") + count("hapax_identities") + count("hapax_queues"), 0);
  EXPECT_EQ(submit(*store, Task().key("a")).kind, SubmitOutcome::Kind::created);
}

}  // namespace
}  // namespace hapax
