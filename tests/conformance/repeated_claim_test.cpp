// A claim that is said again gets what it got, as long as it holds that.
#include "conformance/workflow_test.h"
#include "core/claim_secret.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RepeatedClaim : public WorkflowTest {
 protected:
  ClaimRequest request(const std::string& claim_id, std::int32_t limit = 10) {
    ClaimRequest request = claim_request({"work", "flows"}, limit);
    request.workflows = true;
    request.lease = 60s;
    request.secret = secret_of_claim("store", request.name_space, request.worker, claim_id);
    request.repeatable = true;
    return request;
  }
  static ClaimOutcome say(Store& store, const ClaimRequest& request) { return store.claim({&request, 1}).at(0); }
  ClaimOutcome say(const std::string& claim_id, std::int32_t limit = 10) {
    return say(store(), request(claim_id, limit));
  }
};
HAPAX_FOR_ALL_STORES(RepeatedClaim);

TEST_P(RepeatedClaim, GetsTheSameAttemptsUnderTheSameLeases) {
  submitted(Task().priority(1));
  submitted(Task("other").timeout(10s).input("[1]"));
  submitted(Task());
  const ClaimOutcome first = say("c", 2);
  ASSERT_EQ(first.executions.size(), 2U);
  clock_.advance(5s);
  const ClaimOutcome again = say(*second_handle(), request("c", 2));
  EXPECT_EQ(again.executions, first.executions);
  EXPECT_TRUE(again.more) << "it has not looked for more";
  EXPECT_TRUE(complete(token_of(again.executions[0])).accepted);
  EXPECT_TRUE(complete(token_of(again.executions[1])).accepted);
}

TEST_P(RepeatedClaim, AnotherClaimGetsOthers) {
  const auto a = submitted(Task()).id, b = submitted(Task()).id;
  EXPECT_THAT(ids_of(say("one", 1).executions), ElementsAre(a));
  EXPECT_THAT(ids_of(say("two", 1).executions), ElementsAre(b));
  EXPECT_THAT(ids_of(say("one", 1).executions), ElementsAre(a));
}

TEST_P(RepeatedClaim, ThatGotNothingClaims) {
  EXPECT_THAT(say("c").executions, IsEmpty());
  const auto id = submitted(Task()).id;
  EXPECT_THAT(ids_of(say("c").executions), ElementsAre(id));
}

TEST_P(RepeatedClaim, GetsOnlyWhatItStillHolds) {
  const auto done = submitted(Task().priority(9)).id, held = submitted(Task()).id;
  const ClaimOutcome first = say("c");
  ASSERT_THAT(ids_of(first.executions), ElementsAre(done, held));
  complete(token_of(first.executions[0]));
  EXPECT_THAT(ids_of(say("c").executions), ElementsAre(held));
  complete(token_of(first.executions[1]));
  const auto next = submitted(Task()).id;
  EXPECT_THAT(ids_of(say("c").executions), ElementsAre(next));
}

TEST_P(RepeatedClaim, GetsNothingOfALeaseThatHasEnded) {
  const auto id = submitted(Task()).id;
  say("c");
  clock_.advance(60s);
  EXPECT_THAT(say("c").executions, IsEmpty());
  store().sweep(100);
  clock_.advance(1h);  // past the pause before the next attempt
  const ClaimOutcome later = say("c");
  ASSERT_THAT(ids_of(later.executions), ElementsAre(id));
  EXPECT_EQ(later.executions[0].attempt, 2);
}

TEST_P(RepeatedClaim, GetsWhatItGaveBackOnlyAsNew) {
  submitted(Task());
  const Execution first = say("c").executions.at(0);
  extend(token_of(first), 0s);
  const ClaimOutcome again = say("c");
  ASSERT_EQ(again.executions.size(), 1U);
  EXPECT_EQ(again.executions[0].attempt, first.attempt) << "it cost no attempt";
}

TEST_P(RepeatedClaim, GetsItThoughTheQueueIsPausedOrFullByNow) {
  submitted(Task());
  submitted(Task());
  const ClaimOutcome first = say("c", 1);
  set_policy("work", {.paused = true});
  EXPECT_EQ(say("c", 1).executions, first.executions);
  set_policy("work", {.max_running = 1});
  EXPECT_EQ(say("c", 1).executions, first.executions);
  EXPECT_THAT(say("other", 1).executions, IsEmpty());
}

TEST_P(RepeatedClaim, OfATurnGetsItsEventsToo) {
  start();
  const ClaimOutcome first = say("c");
  ASSERT_EQ(first.executions.size(), 1U);
  EXPECT_EQ(say("c"), [&] {
    ClaimOutcome expected = first;
    expected.more = true;
    expected.next_at = std::nullopt;
    return expected;
  }());
}

TEST_P(RepeatedClaim, InOneBatchWithOthers) {
  const auto a = submitted(Task().priority(2)).id, b = submitted(Task().priority(1)).id, c = submitted(Task()).id;
  say("one", 1);
  const std::vector<ClaimRequest> batch{request("two", 1), request("one", 1), request("three", 1)};
  const auto outcomes = store().claim(batch);
  EXPECT_THAT(ids_of(outcomes.at(0).executions), ElementsAre(b));
  EXPECT_THAT(ids_of(outcomes.at(1).executions), ElementsAre(a));
  EXPECT_THAT(ids_of(outcomes.at(2).executions), ElementsAre(c));
}

TEST_P(RepeatedClaim, OfAnotherNamespaceIsAnotherClaim) {
  submitted(Task());
  say("c");
  ClaimRequest stranger = request("c");
  stranger.name_space = "other";
  EXPECT_THAT(say(store(), stranger).executions, IsEmpty()) << "even with the same secret";
}

}  // namespace
}  // namespace hapax
