// The short way to claim: the same attempts as by the long way, and nothing that somebody else is at.
#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <thread>

#include "core/hex.h"
#include "core/transition.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/verbs/due_tasks.h"
#include "support/cutting_proxy.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/postgres_server.h"
#include "support/task.h"

namespace hapax::postgres {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class TakeDue : public testing::Test {
 protected:
  ~TakeDue() override {
    PQfinish(connection_);
    store_.reset();
    server_.drop_database(url_);
  }

  static PostgresOptions at(const std::string& url) {
    PostgresOptions options;
    options.url = url;
    return options;
  }

  // Whatever is due goes by the long way first: only a claim that was given all it asked for lets the next one take the
  // short way.
  void submit(const std::vector<Submission>& submissions) {
    std::vector<Submission> all{Task().id(test_id(1)).priority(9)};
    all.insert(all.end(), submissions.begin(), submissions.end());
    store_->submit(all);
    EXPECT_EQ(claim(1).size(), 1u);
  }

  std::vector<Execution> claim(std::int32_t limit) {
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {"work"};
    request.types = {"work"};
    request.limit = limit;
    request.worker = "worker";
    request.lease = 30s;
    request.secret = secret_;
    return store_->claim({&request, 1}).at(0).executions;
  }

  std::vector<ExecutionId> claimed_ids(std::int32_t limit) {
    std::vector<ExecutionId> ids;
    for (const Execution& execution : claim(limit)) ids.push_back(execution.id);
    return ids;
  }

  std::string run(const std::string& sql) {
    PGresult* result = PQexec(connection_, sql.c_str());
    const std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : PQresultErrorMessage(result);
    PQclear(result);
    return value;
  }

  // For ten tasks of the type "work" in the first queue.
  std::string with_values(std::string sql) const {
    const std::string now = std::to_string(to_ms(clock_.now()) + 1);
    const std::vector<std::string> values{"1", now, "2147483647", "0", "'work'", "10", "1000"};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string parameter = "$" + std::to_string(i + 1);
      for (std::size_t at; (at = sql.find(parameter)) != std::string::npos;)
        sql.replace(at, parameter.size(), values[i]);
    }
    return sql;
  }
  static std::string to_hex(const std::string& text) {
    std::string hex;
    for (const char c : text) append_hex(hex, static_cast<std::uint8_t>(c));
    return hex;
  }

  // Whether the store's last statement was the short way's.
  bool was_short() {
    return run("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
               " AND query LIKE '/* take */%'") != "0";
  }

  PostgresServer& server_ = PostgresServer::shared();
  const std::string url_ = server_.create_database();
  ManualClock clock_;
  std::unique_ptr<Store> store_ = open_postgres_store(at(url_), &clock_);
  PGconn* connection_ = PQconnectdb(url_.c_str());
  const LeaseSecret secret_ = test_secret(1);
};

TEST_F(TakeDue, BeginsTheAttemptsThatTheRulesWouldBegin) {
  submit({Task().id(test_id(2)), Task().id(test_id(3)).timeout(5s).priority(1), Task().id(test_id(4)).deadline(7s),
          Task().id(test_id(5)).timeout(40s).deadline(60s).key("k").input(R"({"a":1})"),
          Task().id(test_id(6)).delay(1s)});
  std::vector<Execution> expected;
  for (const std::uint64_t n : {3, 2, 4, 5}) {
    Execution execution = store_->find("default", test_id(n)).value();
    start_attempt(execution, "worker", secret_, 30s, clock_.now());
    expected.push_back(execution);
  }
  EXPECT_EQ(claim(4), expected);
  EXPECT_TRUE(was_short());
  for (const Execution& execution : expected) {
    EXPECT_EQ(store_->find("default", execution.id), execution);
    const std::string due_at = run("SELECT due_at FROM hapax.open WHERE id = '" + execution.id.to_string() + "'");
    EXPECT_EQ(due_at, std::to_string(to_ms(*execution.due_at())));
  }
}

TEST_F(TakeDue, WhatFailedBeforeComesWithItsErrors) {
  submit({Task().id(test_id(2)).key("k"), Task().id(test_id(3)), Task().id(test_id(4))});
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(2)));
  const Report failed{{test_id(2), 1, secret_}, Report::Failed{{"Oops", "once"}, true}, "default"};
  EXPECT_TRUE(store_->finish({&failed, 1}).at(0).accepted);
  clock_.advance(60s);
  Execution expected = store_->find("default", test_id(2)).value();
  start_attempt(expected, "worker", secret_, 30s, clock_.now());
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(3)));  // which waits for longer
  EXPECT_THAT(claim(2), testing::Contains(expected));
  EXPECT_EQ(expected.failed_attempts.size(), 1u);
}

TEST_F(TakeDue, TwoAtOnceOfOneProcessBothGetTheirFill) {
  std::vector<Submission> tasks;
  for (std::uint64_t n = 2; n < 202; ++n) tasks.push_back(Task().id(test_id(n)));
  submit(tasks);
  std::vector<ExecutionId> claimed, others;
  std::jthread other([&] {
    for (int i = 0; i < 10; ++i) std::ranges::copy(claimed_ids(10), std::back_inserter(others));
  });
  for (int i = 0; i < 10; ++i) std::ranges::copy(claimed_ids(10), std::back_inserter(claimed));
  other.join();
  EXPECT_EQ(claimed.size(), 100u);
  EXPECT_EQ(others.size(), 100u);
  EXPECT_TRUE(was_short());
  claimed.insert(claimed.end(), others.begin(), others.end());
  EXPECT_EQ(std::set(claimed.begin(), claimed.end()).size(), 200u);
}

// The row is where the claim left it, elsewhere since a heartbeat, or somebody else's by now.
TEST_F(TakeDue, WhatItTookIsCompletedWhereverItsRowIs) {
  submit({Task().id(test_id(2)), Task().id(test_id(3)), Task().id(test_id(4)), Task().id(test_id(5))});
  EXPECT_EQ(claim(4).size(), 4u);
  EXPECT_TRUE(was_short());
  const auto token = [&](std::uint64_t n) { return LeaseToken{test_id(n), 1, secret_}; };
  const Extension extension{token(3), 30s};
  EXPECT_TRUE(store_->extend({&extension, 1}).at(0).ok);
  std::vector<Report> reports;
  for (const std::uint64_t n : {2, 3, 4, 5}) reports.push_back({token(n), Report::Completed{"7"}, "default"});
  reports[2].token.secret = test_secret(99);
  reports[3].name_space = "another";
  std::vector<bool> accepted;
  for (const FinishOutcome& outcome : store_->finish(reports)) accepted.push_back(outcome.accepted);
  EXPECT_THAT(accepted, ElementsAre(true, true, false, false));
  EXPECT_EQ(store_->find("default", test_id(3))->result, "7");
  EXPECT_EQ(store_->find("default", test_id(4))->status, Status::running);
  EXPECT_EQ(store_->find("default", test_id(5))->status, Status::running);
  reports.resize(2);
  for (const FinishOutcome& outcome : store_->finish(reports)) EXPECT_TRUE(outcome.accepted) << "repeated";
}

TEST_F(TakeDue, WhatItLeavesOpenTheLongWayGoesOnWith) {
  submit({Task().id(test_id(2)), Task().id(test_id(3)), Task().id(test_id(4)).delay(1s)});
  EXPECT_THAT(claimed_ids(5), ElementsAre(test_id(2), test_id(3)));
  EXPECT_THAT(claimed_ids(5), ElementsAre());
  clock_.advance(1s);
  EXPECT_THAT(claimed_ids(5), ElementsAre(test_id(4)));
}

TEST_F(TakeDue, WhatSomebodyElseHasLockedIsPassedOver) {
  submit({Task().id(test_id(2)), Task().id(test_id(3)), Task().id(test_id(4))});
  run("BEGIN");
  run("SELECT id FROM hapax.open WHERE id = '" + test_id(2).to_string() + "' FOR UPDATE");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(3)));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s) << "it waited for the lock";
  run("ROLLBACK");
  EXPECT_THAT(claimed_ids(2), ElementsAre(test_id(2), test_id(4))) << "a lock of before is none";
}

TEST_F(TakeDue, LongInputsAreReadInOneRoundTrip) {
  std::vector<Submission> tasks;
  const std::string input = '"' + std::string(200'000, 'x') + '"';  // forty of these fit into an answer
  for (std::uint64_t n = 2; n < 52; ++n) tasks.push_back(Task().id(test_id(n)).input(input));
  submit(tasks);
  CuttingProxy proxy(server_.port());
  std::string behind = url_;
  behind.replace(behind.find(':' + std::to_string(server_.port())), 1 + std::to_string(server_.port()).size(),
                 ':' + std::to_string(proxy.port()));
  store_ = open_postgres_store(at(behind), &clock_);
  EXPECT_EQ(claim(1).size(), 1u);
  for (const bool by_the_short_way : {true, false}) {
    clock_.advance(61s);
    store_->sweep(100);
    const int before = proxy.round_trips();
    EXPECT_GT(claim(by_the_short_way ? 45 : 50).size(), 35u);
    EXPECT_LE(proxy.round_trips() - before, 10) << (by_the_short_way ? "short" : "long");
  }
}

TEST_F(TakeDue, WhatIsDamagedIsGivenBackAndKeepsTheQueueOnTheLongWay) {
  submit({Task().id(test_id(2)).input("\"precious\""), Task().id(test_id(3)), Task().id(test_id(4)),
          Task().id(test_id(5))});
  run("UPDATE hapax.executions SET input = overlay(input PLACING 'x'::bytea FROM 6) WHERE id = '" +
      test_id(2).to_string() + "'");
  EXPECT_THAT(claimed_ids(2), ElementsAre(test_id(3), test_id(4)));
  const std::string state =
      "SELECT status::text || attempt FROM hapax.open WHERE id = '" + test_id(2).to_string() + "'";
  EXPECT_EQ(run(state), "00") << "pending, and no attempt was made";
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(5)));
  EXPECT_FALSE(was_short());
}

TEST_F(TakeDue, OfTwoOnlyOneTakesTheShortWay) {
  submit({Task().id(test_id(2)), Task().id(test_id(3))});
  run("BEGIN");
  run("SELECT pg_advisory_xact_lock(1751216225, queue_no) FROM hapax.queues");
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(2)));
  run("ROLLBACK");
  EXPECT_FALSE(was_short());
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(3)));
  EXPECT_TRUE(was_short());
}

TEST_F(TakeDue, ConcurrencyKeysAreCounted) {
  submit(
      {Task().id(test_id(2)).concurrency_key("k"), Task().id(test_id(3)).concurrency_key("k"), Task().id(test_id(4))});
  EXPECT_THAT(claimed_ids(3), ElementsAre(test_id(2), test_id(4)));
}

TEST_F(TakeDue, LimitsThatAreSetMeanwhileCount) {
  submit({Task().id(test_id(2)), Task().id(test_id(3)), Task().id(test_id(4))});
  EXPECT_THAT(claimed_ids(1), ElementsAre(test_id(2)));
  auto policies = std::make_shared<QueuePolicies>();
  QueuePolicy limited;
  limited.max_running = 3;
  policies->set("default", "work", limited);
  store_->set_policies(policies);
  EXPECT_THAT(claimed_ids(2), ElementsAre(test_id(3)));
}

// By the pages that a scan for ten tasks of one type reads: of an index that is deeper, one more for each look.
TEST_F(TakeDue, OfOneTypeReadsTheSameHoweverMuchWaitsOfOthers) {
  for (std::uint64_t n = 2; n < 52; ++n) {
    const Submission task = Task("work").id(test_id(n));
    store_->submit({&task, 1});
  }
  const auto pages = [&] {
    const std::string plan = run(
        "CREATE FUNCTION pg_temp.pages() RETURNS int AS $do$ DECLARE plan json; BEGIN EXECUTE $sql$EXPLAIN (ANALYZE, "
        "BUFFERS, FORMAT JSON) " +
        with_values(due_statement().sql) +
        "$sql$ INTO plan; RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read "
        "Blocks')::int; END $do$ LANGUAGE plpgsql; SELECT pg_temp.pages()");
    run("DROP FUNCTION pg_temp.pages()");
    return std::stoi(plan);
  };
  const auto add_others = [&](int of_each_type) {
    for (const std::string type : {"a", "other", "z"}) {
      run("INSERT INTO open SELECT r.* FROM (SELECT o FROM open o LIMIT 1) s, generate_series(1, " +
          std::to_string(of_each_type) +
          ") i, LATERAL jsonb_populate_record(s.o, jsonb_build_object('id', gen_random_uuid(), 'priority', i % 3,"
          " 'type', '\\x" +
          to_hex(type) + "')) r");
    }
  };
  run("SET search_path TO hapax");
  add_others(1000);  // so that the index has a root and leaves
  run("ANALYZE open; ANALYZE executions");
  pages();  // the catalogue's pages are read now
  const int alone = pages();
  add_others(50000);
  EXPECT_EQ(run("SELECT count(*) FROM open"), "153050");
  EXPECT_LE(pages(), alone + 6);
  run("ANALYZE open");
  EXPECT_LE(pages(), alone + 6);
}

}  // namespace
}  // namespace hapax::postgres
