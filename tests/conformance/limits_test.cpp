#include "conformance/store_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Limits : public StoreTest {
 protected:
  void submit_many(int count, const std::string& queue = "work") {
    for (int i = 0; i < count; ++i) submitted(Task().queue(queue));
  }
};
HAPAX_FOR_ALL_STORES(Limits);

TEST_P(Limits, MaxRunningCountsWhatRuns) {
  set_policy("work", {.max_running = 2});
  submit_many(5);
  const ClaimOutcome first = claim({"work"}, 1);
  EXPECT_EQ(claimed_ids().size(), 1u);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  complete(token_of(first.executions.at(0)));
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Limits, MaxRunningIsFreedByAFailedAttempt) {
  set_policy("work", {.max_running = 1});
  submit_many(2);
  const Execution first = claim_one();
  fail(token_of(first));
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Limits, MaxRunningIsFreedByALostLease) {
  set_policy("work", {.max_running = 1});
  submit_many(1);
  claim_one();
  clock_.advance(60s);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  store().sweep(100);
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Limits, MaxRunningIsPerQueueAndNamespace) {
  set_policy("work", {.max_running = 1});
  submit_many(2);
  submit_many(2, "other");
  submitted(Task().name_space("tenant"));
  EXPECT_EQ(claimed_ids({"work", "other"}).size(), 3u);
  ClaimRequest request = claim_request({"work"}, 5);
  request.name_space = "tenant";
  EXPECT_EQ(store().claim({&request, 1}).at(0).executions.size(), 1u);
}

TEST_P(Limits, FullQueueDoesNotHoldBackTheOthers) {
  set_policy("a", {.max_running = 1});
  submitted(Task().queue("a").priority(9));
  submitted(Task().queue("a").priority(8));
  const auto other = submitted(Task().queue("b")).id;
  EXPECT_EQ(claimed_ids({"a", "b"}, 1).size(), 1u);
  EXPECT_THAT(claimed_ids({"a", "b"}, 1), ElementsAre(other));
}

TEST_P(Limits, MaxRunningOfZeroHandsOutNothing) {
  set_policy("work", {.max_running = 0});
  submit_many(1);
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Limits, ConcurrencyKeyLetsOneRunAtATime) {
  const auto first = submitted(Task().concurrency_key("c")).id;
  const auto second = submitted(Task().concurrency_key("c")).id;
  const auto other = submitted(Task().concurrency_key("d")).id;
  const auto unkeyed = submitted(Task()).id;
  const ClaimOutcome claimed = claim();
  EXPECT_THAT(ids_of(claimed.executions), ElementsAre(first, other, unkeyed));
  EXPECT_EQ(claimed.next_at, std::nullopt);
  complete(token_of(claimed.executions.at(0)));
  EXPECT_THAT(claimed_ids(), ElementsAre(second));
}

TEST_P(Limits, AFreedSlotDoesNotGoToATaskWhoseDeadlineHasPassed) {
  submitted(Task().concurrency_key("c"));
  const Execution first = claim_one();
  submitted(Task().concurrency_key("c").deadline(1s));
  const auto next = submitted(Task().concurrency_key("c")).id;
  EXPECT_THAT(claimed_ids(), IsEmpty());
  clock_.advance(2s);
  complete(token_of(first));
  EXPECT_THAT(claimed_ids(), ElementsAre(next));
}

TEST_P(Limits, AClaimForNeitherTasksNorWorkflowsGetsNothing) {
  submit_many(3);
  claim_one();  // a store may take the next ones without a look at the queue
  ClaimRequest request = claim_request({"work"}, 10);
  request.tasks = false;
  EXPECT_THAT(store().claim({&request, 1}).at(0).executions, IsEmpty());
}

TEST_P(Limits, ConcurrencyLimitOfTheQueueApplies) {
  set_policy("work", {.concurrency_limit = 2});
  for (int i = 0; i < 3; ++i) submitted(Task().concurrency_key("c"));
  EXPECT_EQ(claimed_ids().size(), 2u);
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Limits, ConcurrencyKeyIsPerQueue) {
  submitted(Task().queue("a").concurrency_key("c"));
  submitted(Task().queue("b").concurrency_key("c"));
  EXPECT_EQ(claimed_ids({"a", "b"}).size(), 2u);
}

TEST_P(Limits, BlockedTasksAreSkippedHoweverManyThereAre) {
  submitted(Task().concurrency_key("c").priority(2));
  for (int i = 0; i < 300; ++i) submitted(Task().concurrency_key("c").priority(1));
  const auto last = submitted(Task()).id;
  claim_one();
  EXPECT_THAT(claimed_ids({"work"}, 1), ElementsAre(last));
}

TEST_P(Limits, RateLimitLetsTheBurstGoThenTheRate) {
  set_policy("work", {.rate_limit = Rate{2, 1s, 2}});
  submit_many(5);
  const ClaimOutcome burst = claim();
  EXPECT_EQ(burst.executions.size(), 2u);
  EXPECT_EQ(burst.next_at, now() + 500ms);
  clock_.advance(499ms);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  clock_.advance(1ms);
  EXPECT_EQ(claimed_ids().size(), 1u);
  clock_.advance(1h);
  EXPECT_EQ(claimed_ids().size(), 2u);
}

TEST_P(Limits, RateIsSharedByAllRequestsOfABatch) {
  set_policy("work", {.rate_limit = Rate{2, 1s, 2}});
  submit_many(5);
  const std::vector<ClaimRequest> requests{claim_request({"work"}, 1), claim_request({"work"}, 5)};
  const auto outcomes = store().claim(requests);
  EXPECT_EQ(outcomes.at(0).executions.size(), 1u);
  EXPECT_EQ(outcomes.at(1).executions.size(), 1u);
}

TEST_P(Limits, RateCountsOnlyWhatIsHandedOut) {
  set_policy("work", {.rate_limit = Rate{1, 1s, 1}});
  claim();
  submitted(Task().delay(5ms));
  claim();
  clock_.advance(5ms);
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Limits, BlockedTaskCostsNoRate) {
  set_policy("work", {.rate_limit = Rate{2, 1h, 2}});
  submitted(Task().concurrency_key("c"));
  submitted(Task().concurrency_key("c"));
  const auto free = submitted(Task()).id;
  claim_one();
  EXPECT_THAT(claimed_ids(), ElementsAre(free));
}

TEST_P(Limits, RateGivesNoNextAtWhereNothingIsLeft) {
  set_policy("work", {.rate_limit = Rate{1, 1s, 1}});
  submit_many(1);
  EXPECT_EQ(claim().next_at, std::nullopt);
}

TEST_P(Limits, RateGivesNoNextAtWhereOnlyBlockedTasksAreLeft) {
  set_policy("work", {.rate_limit = Rate{1, 1s, 1}});
  submitted(Task().concurrency_key("c"));
  submitted(Task().concurrency_key("c"));
  EXPECT_EQ(claim().next_at, std::nullopt);
}

TEST_P(Limits, NextAtIsTheEarlierOfRateAndDelay) {
  set_policy("work", {.rate_limit = Rate{1, 10s, 1}});
  submit_many(2);
  submitted(Task().queue("other").delay(3s));
  EXPECT_EQ(claim({"work", "other"}).next_at, now() + 3s);
  EXPECT_EQ(claim({"work"}).next_at, now() + 10s);
}

TEST_P(Limits, RatelessQueueGoesOnBesideALimitedOne) {
  set_policy("slow", {.rate_limit = Rate{1, 1h, 1}});
  submit_many(3, "slow");
  submit_many(3, "fast");
  EXPECT_EQ(claimed_ids({"slow", "fast"}).size(), 4u);
}

TEST_P(Limits, RateSurvivesAChangeOfRules) {
  set_policy("work", {.rate_limit = Rate{1, 1h, 1}});
  submit_many(2);
  claim();
  set_policy("work", {.rate_limit = Rate{1, 1h, 1}, .max_running = 10});
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Limits, RaisedRateCountsAtOnce) {
  set_policy("work", {.rate_limit = Rate{2, 24h, 2}});
  submit_many(60);
  EXPECT_EQ(claimed_ids().size(), 2u);
  set_policy("work", {.rate_limit = Rate{40, 1s, 40}});
  EXPECT_EQ(claimed_ids().size(), 38u);  // the two count, and no more than two
  clock_.advance(100ms);
  EXPECT_EQ(claimed_ids().size(), 4u);
}

TEST_P(Limits, WhatWasTakenUnderTheOldRateIsWorthAtMostAnEmptyBucket) {
  set_policy("work", {.rate_limit = Rate{10, 24h, 10}});
  submit_many(15);
  EXPECT_EQ(claimed_ids().size(), 10u);
  set_policy("work", {.rate_limit = Rate{1, 60s, 1}});
  EXPECT_EQ(claim().next_at, now() + 60s);
  clock_.advance(59'999ms);
  const ClaimOutcome early = second_handle()->claim(std::vector{claim_request({"work"}, 5)}).at(0);
  EXPECT_THAT(early.executions, IsEmpty());
  clock_.advance(1ms);
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Limits, LoweredRateCountsWhatWasTakenUnderTheOldOne) {
  set_policy("work", {.rate_limit = Rate{100, 1s, 100}});
  submit_many(5);
  EXPECT_EQ(claimed_ids({"work"}, 1).size(), 1u);
  set_policy("work", {.rate_limit = Rate{2, 24h, 2}});
  const ClaimOutcome lowered = claim();
  EXPECT_EQ(lowered.executions.size(), 1u);
  EXPECT_EQ(lowered.next_at, now() + 12h);
}

TEST_P(Limits, LoweredBurstCountsAtOnce) {
  set_policy("work", {.rate_limit = Rate{1, 1s, 20}});
  submit_many(22);
  EXPECT_EQ(claimed_ids({"work"}, 20).size(), 20u);
  set_policy("work", {.rate_limit = Rate{1, 1s, 1}});
  EXPECT_EQ(claim().next_at, now() + 1s);
  clock_.advance(1s);
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Limits, EachChangeOfTheRateCountsWhatWasTakenBefore) {
  const QueuePolicy slow{.rate_limit = Rate{1, 1h, 1}}, fast{.rate_limit = Rate{5, 1h, 5}};
  set_policy("work", slow);
  submit_many(10);
  EXPECT_EQ(claimed_ids().size(), 1u);
  set_policy("work", fast);
  EXPECT_EQ(claimed_ids().size(), 4u);
  set_policy("work", slow);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  set_policy("work", fast);
  EXPECT_EQ(claimed_ids().size(), 4u);  // an empty bucket of the slow one is one taken
}

TEST_P(Limits, LiftedRateLetsEverythingGo) {
  set_policy("work", {.rate_limit = Rate{1, 1h, 1}});
  submit_many(3);
  claim();
  set_policy("work", {});
  EXPECT_EQ(claimed_ids().size(), 2u);
}

}  // namespace
}  // namespace hapax
