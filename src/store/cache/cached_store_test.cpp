#include "store/cache/cached_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <thread>

#include "store/cache/cached_identity.h"
#include "store/memory/memory_store.h"
#include "support/describe.h"
#include "support/false_redis.h"
#include "support/manual_clock.h"
#include "support/redis_server.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using Kind = SubmitOutcome::Kind;

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// The store, which can be told to throw, and counts how often it was submitted to.
class Watched final : public ForwardingStore {
 public:
  explicit Watched(const Clock& clock) : ForwardingStore(open_memory_store(clock)) {}

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    submitted += submissions.size();
    return ForwardingStore::submit(submissions, waiters);
  }
  std::size_t submitted = 0;
};

class CachedStoreTest : public testing::Test {
 protected:
  std::unique_ptr<CachedStore> open(const RedisAddress& redis, Duration timeout = 5s) {
    CacheOptions options;
    options.redis = redis;
    options.timeout = timeout;
    options.first_pause = 1ms;
    options.longest_pause = 20ms;
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(log_mutex_);
      log_ += line + "\n";
    };
    return open_cached_store(store_, options);
  }

  std::unique_ptr<CachedStore> open_connected(const RedisServer& redis) {
    auto cached = open(redis.address());
    EXPECT_TRUE(eventually([&] { return cached->connected(); }));
    return cached;
  }

  static SubmitOutcome submit(Store& store, const Submission& submission) {
    return store.submit({&submission, 1}).at(0);
  }

  Execution completed(const Submission& submission, const std::string& result = "1") {
    submit(*store_, submission);
    ClaimRequest request;
    request.name_space = submission.execution.name_space;
    request.queues = {submission.execution.queue};
    request.secret = LeaseSecret::generate();
    const Execution claimed = store_->claim({&request, 1}).at(0).executions.at(0);
    const Report report{token_of(claimed), Report::Completed{result}};
    EXPECT_TRUE(store_->finish({&report, 1}).at(0).accepted);
    return store_->find(claimed.name_space, claimed.id).value();
  }

  // Has the identity in Redis, and checks that it is answered from there.
  void warm(CachedStore& cached, const Submission& duplicate) {
    EXPECT_EQ(submit(cached, duplicate).kind, Kind::duplicate);
    ASSERT_TRUE(cached.settle(20s));
    const auto hits = cached.counters().hits;
    EXPECT_EQ(submit(cached, duplicate).kind, Kind::duplicate);
    ASSERT_EQ(cached.counters().hits, hits + 1);
  }

  std::string log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

  ManualClock clock_;
  std::shared_ptr<Watched> store_ = std::make_shared<Watched>(clock_);
  std::mutex log_mutex_;
  std::string log_;
};

// ---- what is answered from Redis

TEST_F(CachedStoreTest, AnswersADuplicateOfACompletedTaskAsTheStoreWould) {
  RedisServer redis;
  const auto cached = open_connected(redis);
  const Execution owner = completed(Task().key("k").ttl(1h), "{\"charge\":1}");
  warm(*cached, Task().key("k"));

  const std::size_t before = store_->submitted;
  const SubmitOutcome from_redis = submit(*cached, Task().key("k"));
  EXPECT_EQ(store_->submitted, before);
  EXPECT_EQ(from_redis, submit(*store_, Task().key("k")));
  EXPECT_EQ(from_redis.execution, owner);
  EXPECT_EQ(from_redis.expires_at, owner.created_at + 1h);
}

TEST_F(CachedStoreTest, AnswersAnotherInputUnderTheKeyWithAConflict) {
  RedisServer redis;
  const auto cached = open_connected(redis);
  completed(Task().key("k").input("1"));
  warm(*cached, Task().key("k").input("1"));
  EXPECT_EQ(submit(*cached, Task().key("k").input("2")), submit(*store_, Task().key("k").input("2")));
  EXPECT_EQ(cached->counters().hits, 2);
}

TEST_F(CachedStoreTest, OneHandlesEntryServesTheOther) {
  RedisServer redis;
  const auto one = open_connected(redis), two = open_connected(redis);
  completed(Task().key("k"));
  warm(*one, Task().key("k"));
  submit(*two, Task().key("k"));
  EXPECT_EQ(two->counters().hits, 1);
}

TEST_F(CachedStoreTest, KeepsTheOrderOfABatchThatIsAnsweredInParts) {
  RedisServer redis;
  const auto cached = open_connected(redis);
  const Execution owner = completed(Task().key("done"));
  warm(*cached, Task().key("done"));
  const std::vector<Submission> batch{Task().key("new"), Task().key("done"), Task(), Task().key("new")};
  const auto outcomes = cached->submit(batch);
  EXPECT_EQ(outcomes[0].kind, Kind::created);
  EXPECT_EQ(outcomes[1].execution, owner);
  EXPECT_EQ(outcomes[2].kind, Kind::created);
  EXPECT_EQ(outcomes[3].kind, Kind::duplicate);
  EXPECT_EQ(outcomes[3].execution.id, outcomes[0].execution.id);
  EXPECT_EQ(cached->counters().hits, 2);
}

TEST_F(CachedStoreTest, NothingThatIsNotCompletedIsKept) {
  RedisServer redis;
  const auto cached = open_connected(redis);
  submit(*cached, Task().key("k"));
  submit(*cached, Task().key("k"));
  ASSERT_TRUE(cached->settle(20s));
  EXPECT_EQ(cached->counters().stored, 0);
}

// ---- what makes a kept answer wrong

class Outdated : public CachedStoreTest {
 protected:
  Outdated() {
    cached_ = open_connected(redis_);
    owner_ = completed(Task().key("k").ttl(1h));
    warm(*cached_, Task().key("k"));
  }

  RedisServer redis_;
  std::unique_ptr<CachedStore> cached_;
  Execution owner_;
};

TEST_F(Outdated, AReleaseElsewhereIsSeenAtOnce) {
  store_->release_identity("default", key_hash("work", "k"));
  EXPECT_EQ(submit(*cached_, Task().key("k")).kind, Kind::created);
}

TEST_F(Outdated, AReplacementElsewhereIsSeenAtOnce) {
  const auto next = submit(*store_, Task().key("k").reuse(Reuse::replace)).execution.id;
  EXPECT_EQ(submit(*cached_, Task().key("k")).execution.id, next);
}

TEST_F(Outdated, UnderAPolicyThatReplacesItNothingIsAnsweredFromRedis) {
  for (const Reuse reuse : {Reuse::allow_closed, Reuse::replace}) {
    EXPECT_EQ(submit(*cached_, Task().key("k").reuse(reuse)).kind, Kind::created);
  }
}

TEST_F(Outdated, AReplacementEarlierInTheBatchCounts) {
  const std::vector<Submission> batch{Task().key("k").reuse(Reuse::allow_closed), Task().key("k")};
  const auto outcomes = cached_->submit(batch);
  EXPECT_EQ(outcomes[0].kind, Kind::created);
  EXPECT_EQ(outcomes[1].execution.id, outcomes[0].execution.id);
}

TEST_F(Outdated, ItEndsWithItsTtl) {
  clock_.advance(1h - 1ms);
  EXPECT_EQ(submit(*cached_, Task().key("k")).execution.id, owner_.id);
  clock_.advance(1ms);
  EXPECT_EQ(submit(*cached_, Task().key("k")).kind, Kind::created);
}

TEST_F(Outdated, APurgedOwnerLeavesOnlyItsTombstone) {
  auto policies = std::make_shared<QueuePolicies>();
  policies->task_retention = 1min;
  store_->set_policies(policies);
  clock_.advance(2min);
  store_->purge(100);
  const SubmitOutcome outcome = submit(*cached_, Task().key("k"));
  EXPECT_TRUE(outcome.purged);
  EXPECT_EQ(outcome, submit(*store_, Task().key("k")));
}

TEST_F(Outdated, ARetentionThatBecomesShorterEndsAnEntryWithoutTtl) {
  completed(Task().key("without"));
  warm(*cached_, Task().key("without"));
  clock_.advance(2min);
  warm(*cached_, Task().key("without"));
  auto policies = std::make_shared<QueuePolicies>();
  policies->task_retention = 1min;
  cached_->set_policies(policies);
  EXPECT_EQ(submit(*cached_, Task().key("without")).kind, Kind::created);
}

TEST_F(Outdated, ASubmissionThatIsRepeatedIsAnsweredAsCreated) {
  const Submission first = Task().key("r");
  submit(*cached_, first);
  const Execution second = completed(Task().key("r").reuse(Reuse::replace));
  warm(*cached_, Task().key("r"));
  EXPECT_EQ(submit(*cached_, first).kind, Kind::created);
  EXPECT_EQ(submit(*cached_, first).execution.id, first.execution.id);
}

TEST_F(Outdated, ADryRunAsksTheStore) {
  const auto hits = cached_->counters().hits;
  EXPECT_EQ(submit(*cached_, Task().key("k").dry_run()).kind, Kind::duplicate);
  EXPECT_EQ(cached_->counters().hits, hits);
}

TEST_F(Outdated, AnotherStoreOnTheSameRedisIsNotMistakenForIt) {
  store_ = std::make_shared<Watched>(clock_);
  const auto fresh = open_connected(redis_);
  EXPECT_EQ(submit(*fresh, Task().key("k")).kind, Kind::created);
  EXPECT_EQ(fresh->counters().refuted, 1);
}

// ---- Redis in trouble

TEST_F(Outdated, WhatSomebodyElseWroteUnderTheKeyIsNoAnswer) {
  const std::string key = cache_key(key_hash("work", "k"));
  EXPECT_EQ(redis_.command({"SET", key, "not ours"}), "+OK");
  EXPECT_EQ(submit(*cached_, Task().key("k")).execution.id, owner_.id);
  redis_.command({"DEL", key});
  redis_.command({"LPUSH", key, "not even a text"});
  EXPECT_EQ(submit(*cached_, Task().key("k")).execution.id, owner_.id);
  EXPECT_EQ(cached_->counters().garbage, 1);
}

TEST_F(Outdated, AnEntryMovedToAnotherKeyIsNoAnswer) {
  const Execution other = completed(Task().key("other"));
  redis_.command({"COPY", cache_key(key_hash("work", "k")), cache_key(key_hash("work", "other"))});
  EXPECT_EQ(submit(*cached_, Task().key("other")).execution.id, other.id);
  EXPECT_EQ(cached_->counters().garbage, 1);
}

TEST_F(Outdated, AFlushedRedisIsFilledAgain) {
  redis_.flush();
  warm(*cached_, Task().key("k"));
}

TEST_F(Outdated, AKilledRedisIsDoneWithoutAndUsedAgainWhenItIsBack) {
  redis_.kill();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(submit(*cached_, Task().key("k")).execution.id, owner_.id);
  EXPECT_GE(cached_->counters().troubles, 1);
  EXPECT_NE(log().find("is not used"), std::string::npos) << log();
  redis_.start();
  ASSERT_TRUE(eventually([&] { return cached_->connected(); }));
  warm(*cached_, Task().key("k"));
}

TEST_F(CachedStoreTest, ARedisThatHangsCostsOneTimeout) {
  RedisServer redis;
  const auto cached = open(redis.address(), 20ms);
  ASSERT_TRUE(eventually([&] { return cached->connected(); }));
  const Execution owner = completed(Task().key("k"));
  redis.pause();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(submit(*cached, Task().key("k")).execution.id, owner.id);
  EXPECT_GE(cached->counters().troubles, 1);
  EXPECT_LE(cached->counters().troubles, 2) << "it was asked again although it hangs";
  redis.resume();
  ASSERT_TRUE(eventually([&] { return cached->connected(); }));
}

TEST_F(CachedStoreTest, AFullRedisKeepsNothingAndHurtsNobody) {
  RedisServer redis({"--maxmemory", "1", "--maxmemory-policy", "noeviction"});
  const auto cached = open_connected(redis);
  const Execution owner = completed(Task().key("k"));
  submit(*cached, Task().key("k"));
  ASSERT_TRUE(cached->settle(20s));
  EXPECT_EQ(cached->counters().refused, 1);
  EXPECT_EQ(submit(*cached, Task().key("k")).execution.id, owner.id);
  EXPECT_TRUE(cached->connected());
}

TEST_F(CachedStoreTest, ARedisThatWantsAPasswordIsToldIt) {
  RedisServer redis({"--requirepass", "secret"});
  const auto locked_out = open(redis.address());
  EXPECT_TRUE(eventually([&] { return locked_out->counters().troubles > 0; }));
  EXPECT_NE(log().find("NOAUTH"), std::string::npos) << log();
  RedisAddress address = redis.address();
  address.password = "secret";
  address.database = 2;
  const auto cached = open(address);
  ASSERT_TRUE(eventually([&] { return cached->connected(); }));
  completed(Task().key("k"));
  warm(*cached, Task().key("k"));
  EXPECT_EQ(log().find("secret"), std::string::npos);
}

TEST_F(CachedStoreTest, WhatIsTooLargeIsNotKept) {
  RedisServer redis;
  const auto cached = open_connected(redis);
  completed(Task().key("k"), '"' + std::string(20'000, 'x') + '"');
  submit(*cached, Task().key("k"));
  ASSERT_TRUE(cached->settle(20s));
  EXPECT_EQ(cached->counters().stored, 0);
}

// ---- what is no Redis at all

class NoRedis : public CachedStoreTest, public testing::WithParamInterface<const char*> {};

// Each pretends to be a Redis until it is asked for a key.
INSTANTIATE_TEST_SUITE_P(Answers, NoRedis,
                         testing::Values("HTTP/1.1 400 Bad Request\r\n\r\n", "*1\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
                                         "*-1\r\n", "*1\r\n$99999999999\r\n", "*1000000000\r\n", "$-1\r\n", ":1\r\n",
                                         "-LOADING Redis is loading the dataset in memory\r\n",
                                         "*1\r\n*1\r\n*1\r\n$1\r\na\r\n", "\r\n", "*1\r\n$3\r\nabcdef\r\n"));

TEST_P(NoRedis, IsNotBelieved) {
  FalseRedis redis([](const std::string& received) -> std::string {
    return received.find("PING") != std::string::npos ? "+PONG\r\n" : GetParam();
  });
  const auto cached = open(redis.address(), 50ms);
  const Execution owner = completed(Task().key("k"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] { return cached->connected(); }));
    EXPECT_EQ(submit(*cached, Task().key("k")).execution.id, owner.id);
  }
  EXPECT_EQ(cached->counters().hits, 0);
  EXPECT_GE(cached->counters().troubles, 1);
}

TEST_F(CachedStoreTest, AnAnswerThatDripsInIsNotWaitedFor) {
  FalseRedis redis([](const std::string& received) -> std::string {
    if (received.find("PING") != std::string::npos) return "+PONG\r\n";
    return "*1\r\n$1000\r\nx";
  });
  const auto cached = open(redis.address(), 30ms);
  ASSERT_TRUE(eventually([&] { return cached->connected(); }));
  const Execution owner = completed(Task().key("k"));
  EXPECT_EQ(submit(*cached, Task().key("k")).execution.id, owner.id);
  EXPECT_EQ(cached->counters().troubles, 1);
}

TEST_F(CachedStoreTest, NobodyThereIsNoReasonToFail) {
  RedisAddress nowhere;
  nowhere.socket = "/nonexistent/redis.sock";
  const auto cached = open(nowhere);
  const Execution owner = completed(Task().key("k"));
  EXPECT_EQ(submit(*cached, Task().key("k")).execution.id, owner.id);
  EXPECT_TRUE(eventually([&] { return cached->counters().troubles > 1; }));
}

}  // namespace
}  // namespace hapax
