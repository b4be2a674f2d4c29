// Workers announce themselves, are listed with what they hold, and are forgotten.
#include "conformance/store_test.h"

namespace hapax {
namespace {

class WorkerTest : public StoreTest {
 protected:
  WorkerInfo worker(const std::string& name, const std::string& name_space = "default") {
    return {.name_space = name_space,
            .name = name,
            .origin = {.sdk = "c++", .version = "1.2.3", .host = "node-7", .pid = 4711},
            .queues = {"work", "other"},
            .types = {"charge", "mail"},
            .tasks = true,
            .workflows = true,
            .last_seen_at = now()};
  }
  void announce(const WorkerInfo& worker) { store().announce({&worker, 1}); }
  std::vector<std::string> names(const std::string& name_space = "default") {
    std::vector<std::string> names;
    for (const WorkerInfo& worker : store().workers(name_space)) names.push_back(worker.name);
    return names;
  }

  using Names = std::vector<std::string>;
};
HAPAX_FOR_ALL_STORES(WorkerTest);

TEST_P(WorkerTest, NobodyIsKnownAtFirst) {
  EXPECT_TRUE(store().workers("default").empty());
  store().announce({});
  EXPECT_TRUE(store().workers("default").empty());
}

TEST_P(WorkerTest, WhatAWorkerSaysComesBackAsItWas) {
  const WorkerInfo full = worker("größe ./%'\"");
  const WorkerInfo bare{.name_space = "default", .name = "bare", .queues = {"q"}, .last_seen_at = now()};
  const std::vector<WorkerInfo> both{full, bare};
  store().announce(both);
  EXPECT_EQ(store().workers("default"), (std::vector<WorkerInfo>{bare, full}));
}

TEST_P(WorkerTest, ALaterWordReplacesAnEarlierOne) {
  announce(worker("w"));
  clock_.advance(20s);
  WorkerInfo again = worker("w");
  again.types = {};
  again.queues = {"third"};
  again.workflows = false;
  again.origin = {};
  announce(again);
  EXPECT_EQ(store().workers("default"), std::vector<WorkerInfo>{again});
}

TEST_P(WorkerTest, OfTwoWordsInOneCallTheLastCounts) {
  WorkerInfo first = worker("w"), last = worker("w");
  last.types = {"last"};
  const std::vector<WorkerInfo> both{first, last};
  store().announce(both);
  EXPECT_EQ(store().workers("default"), std::vector<WorkerInfo>{last});
}

TEST_P(WorkerTest, NamespacesAreApart) {
  const std::vector<WorkerInfo> all{worker("b"), worker("a"), worker("a", "other")};
  store().announce(all);
  EXPECT_EQ(names(), (Names{"a", "b"}));
  EXPECT_EQ(names("other"), Names{"a"});
  EXPECT_EQ(names("third"), Names{});
}

TEST_P(WorkerTest, SaysHowManyItHoldsNow) {
  announce(worker("test"));
  announce(worker("idle"));
  for (int i = 0; i < 3; ++i) submitted(Task());
  ClaimRequest request = claim_request({"work"}, 2);
  request.worker = "test";
  const auto claimed = store().claim({&request, 1}).at(0).executions;
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_EQ(store().workers("default").at(1).running, 2);
  EXPECT_EQ(store().workers("default").at(0).running, 0);
  complete(token_of(claimed.at(0)));
  EXPECT_EQ(store().workers("default").at(1).running, 1);
}

TEST_P(WorkerTest, IsForgottenAnHourAfterItWasLastSeen) {
  announce(worker("old"));
  clock_.advance(30min);
  announce(worker("young"));
  clock_.advance(30min);
  EXPECT_EQ(names(), Names{"young"});
  const PurgeOutcome purged = store().purge(100);
  EXPECT_EQ(purged, PurgeOutcome()) << "workers are not counted among what is purged";
  EXPECT_EQ(names(), Names{"young"});
  announce(worker("old"));
  EXPECT_EQ(names(), (Names{"old", "young"}));
}

TEST_P(WorkerTest, AnotherHandleSeesThem) {
  announce(worker("w"));
  EXPECT_EQ(second_handle()->workers("default"), std::vector<WorkerInfo>{worker("w")});
}

TEST_P(WorkerTest, OfTooManyTheOnesSeenLastAreKept) {
  if (GetParam().name.starts_with("S3")) GTEST_SKIP() << "purge does it there, and 10,000 PUTs take their time";
  announce(worker("first"));
  clock_.advance(1s);
  std::vector<WorkerInfo> many;
  for (int i = 0; i < 10'000; ++i) many.push_back(worker("w" + std::to_string(i)));
  store().announce(many);
  announce(worker("w1", "other"));
  const auto found = store().workers("default");
  EXPECT_EQ(found.size(), 10'000U);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const WorkerInfo& each) { return each.name == "first"; }), 0);
  EXPECT_EQ(names("other"), Names{"w1"});
}

}  // namespace
}  // namespace hapax
