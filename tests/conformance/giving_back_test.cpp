// A lease of no length gives the attempt back, as if it had never been claimed.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GivingBack : public WorkflowTest {
 protected:
  ExtendOutcome give_back(const Execution& claimed) { return extend(token_of(claimed), 0ms); }
};
HAPAX_FOR_ALL_STORES(GivingBack);

TEST_P(GivingBack, CostsNoAttemptAndLeavesTheTaskClaimableAtOnce) {
  const auto id = submitted(Task().max_attempts(1)).id;
  for (int i = 0; i < 5; ++i) {
    const Execution claimed = claim_one();
    EXPECT_EQ(claimed.attempt, 1);
    const ExtendOutcome outcome = give_back(claimed);
    EXPECT_TRUE(outcome.ok);
    EXPECT_FALSE(outcome.cancel_requested);
    EXPECT_EQ(outcome.lease_expires_at, std::nullopt);
    EXPECT_THAT(ids_of(outcome.effects.ready), ElementsAre(id));
    EXPECT_EQ(find(id)->attempt, 0);
    EXPECT_THAT(find(id)->failed_attempts, IsEmpty());
  }
  EXPECT_TRUE(complete(token_of(claim_one())).accepted);
  EXPECT_EQ(find(id)->attempt, 1);
}

TEST_P(GivingBack, KeepsThePlaceInTheQueue) {
  const auto first = submitted(Task().priority(1)).id;
  const auto second = submitted(Task()).id;
  clock_.advance(1s);
  give_back(claim({"work"}, 1).executions.at(0));
  EXPECT_THAT(claimed_ids(), ElementsAre(first, second));
}

TEST_P(GivingBack, EndsTheLease) {
  submitted(Task());
  const Execution claimed = claim_one();
  give_back(claimed);
  EXPECT_FALSE(give_back(claimed).ok);
  EXPECT_FALSE(extend(token_of(claimed)).ok);
  EXPECT_FALSE(complete(token_of(claimed)).accepted);
  const Execution again = claim_one();
  EXPECT_FALSE(complete(token_of(claimed)).accepted) << "the attempt has the same number, but another lease";
  EXPECT_TRUE(complete(token_of(again)).accepted);
}

TEST_P(GivingBack, OfALeaseThatIsLostChangesNothing) {
  const auto id = submitted(Task()).id;
  const Execution lost = claim_one();
  clock_.advance(61s);
  store().sweep(100);
  const Execution taken = claim_one();
  EXPECT_FALSE(give_back(lost).ok);
  EXPECT_EQ(status_of(id), Status::running);
  EXPECT_TRUE(complete(token_of(taken)).accepted);
}

TEST_P(GivingBack, OfAnotherNamespaceIsLost) {
  submitted(Task());
  const Extension others{token_of(claim_one()), 0ms, "tenant"};
  EXPECT_FALSE(store().extend({&others, 1}).at(0).ok);
}

TEST_P(GivingBack, ClosesWhatWasToBeCancelled) {
  const auto id = submitted(Task()).id;
  const Execution claimed = claim_one();
  cancel(id);
  const ExtendOutcome outcome = give_back(claimed);
  EXPECT_TRUE(outcome.ok);
  EXPECT_TRUE(outcome.cancel_requested);
  EXPECT_THAT(ids_of(outcome.effects.closed), ElementsAre(id));
  EXPECT_EQ(status_of(id), Status::cancelled);
}

TEST_P(GivingBack, FreesTheSlotOfTheQueueAndOfTheConcurrencyKey) {
  set_policy("work", {.max_running = 1, .concurrency_limit = 1});
  submitted(Task().concurrency_key("k"));
  submitted(Task().concurrency_key("k"));
  const Execution claimed = claim_one();
  EXPECT_THAT(claimed_ids(), IsEmpty());
  give_back(claimed);
  EXPECT_THAT(claimed_ids(), ElementsAre(claimed.id));
}

TEST_P(GivingBack, ReturnsThePermitOfTheRateLimitOnce) {
  set_policy("work", {.rate_limit = Rate{2, 1h, 2}});
  for (int i = 0; i < 4; ++i) submitted(Task());
  const std::vector<Execution> claimed = claim().executions;
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  EXPECT_TRUE(give_back(claimed[1]).ok);
  EXPECT_FALSE(give_back(claimed[1]).ok);
  EXPECT_THAT(claimed_ids(), ElementsAre(claimed[1].id));
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(GivingBack, FillsNoBucketFurtherThanItsBurst) {
  set_policy("work", {.rate_limit = Rate{1, 1s, 1}});
  for (int i = 0; i < 3; ++i) submitted(Task());
  const Execution claimed = claim_one();
  clock_.advance(2s);
  give_back(claimed);
  EXPECT_THAT(claimed_ids(), ElementsAre(claimed.id));
}

TEST_P(GivingBack, KeepsTheAttemptsThatWereMadeBefore) {
  const auto id = submitted(Task()).id;
  fail(token_of(claim_one()));
  clock_.advance(61s);
  const Execution second = claim_one();
  EXPECT_EQ(second.attempt, 2);
  give_back(second);
  EXPECT_EQ(find(id)->attempt, 1);
  EXPECT_EQ(find(id)->failed_attempts.size(), 1U);
  EXPECT_EQ(claim_one().attempt, 2);
}

TEST_P(GivingBack, ATurnIsGivenBackAsWell) {
  const Execution run = suspended_on_task();
  complete(token_of(claim_one()));
  const Execution claimed = claim_turn();
  EXPECT_THAT(ids_of(give_back(claimed).effects.ready), ElementsAre(run.id));
  Turn stale = turn(claimed);
  EXPECT_FALSE(commit(stale).accepted);
  Turn second = turn(claim_turn());
  EXPECT_EQ(events_.size(), 2U);
  end_completed(second);
  EXPECT_TRUE(commit(second).accepted);
}

}  // namespace
}  // namespace hapax
