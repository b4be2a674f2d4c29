#include "conformance/store_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Claim : public StoreTest {};
HAPAX_FOR_ALL_STORES(Claim);

TEST_P(Claim, StartsTheAttemptUnderALease) {
  const Execution task = submitted(Task().timeout(10s));
  clock_.advance(1s);
  ClaimRequest request = claim_request({"work"}, 1);
  request.lease = 30s;
  const ClaimOutcome outcome = store().claim({&request, 1}).at(0);

  ASSERT_EQ(outcome.executions.size(), 1u);
  Execution expected = task;
  expected.status = Status::running;
  expected.attempt = 1;
  expected.started_at = now();
  expected.worker = "worker-1";
  expected.lease_secret = request.secret;
  expected.lease_expires_at = now() + 30s;
  expected.attempt_ends_by = now() + 10s;
  EXPECT_EQ(outcome.executions[0], expected);
  EXPECT_EQ(find(task.id), expected);
}

TEST_P(Claim, HandsOutEachTaskOnce) {
  submitted(Task());
  EXPECT_EQ(claimed_ids().size(), 1u);
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Claim, OfAnUnknownQueueIsEmpty) {
  const ClaimOutcome outcome = claim({"nowhere"});
  EXPECT_THAT(outcome.executions, IsEmpty());
  EXPECT_EQ(outcome.next_at, std::nullopt);
}

TEST_P(Claim, HighestPriorityFirstThenRunAtThenId) {
  const auto low = submitted(Task().priority(-1)).id;
  const auto later = submitted(Task().run_at(now() - 1s)).id;
  const auto earlier = submitted(Task().run_at(now() - 2s)).id;
  const auto high = submitted(Task().priority(1)).id;
  const auto same_as_later = submitted(Task().run_at(now() - 1s)).id;
  EXPECT_THAT(claimed_ids(), ElementsAre(high, earlier, later, same_as_later, low));
}

TEST_P(Claim, OfTypesHandsOutThoseAlone) {
  const auto a = submitted(Task("a")).id;
  const auto b = submitted(Task("b").priority(9)).id;
  const auto c = submitted(Task("c")).id;
  EXPECT_THAT(claimed_of({"other"}), IsEmpty());
  EXPECT_THAT(claimed_of({"a"}), ElementsAre(a));
  EXPECT_THAT(claimed_of({"a", "c", "other"}), ElementsAre(c));
  EXPECT_THAT(claimed_ids(), ElementsAre(b));
}

TEST_P(Claim, OfSeveralTypesKeepsTheOrderOverAllOfThem) {
  const auto low = submitted(Task("a").priority(-1)).id;
  const auto later = submitted(Task("b").run_at(now() - 1s)).id;
  submitted(Task("c").priority(7));
  const auto earlier = submitted(Task("a").run_at(now() - 2s)).id;
  const auto high = submitted(Task("b").priority(1)).id;
  const auto same_as_later = submitted(Task("a").run_at(now() - 1s)).id;
  EXPECT_THAT(claimed_of({"b", "a"}, 3), ElementsAre(high, earlier, later));
  EXPECT_THAT(claimed_of({"b", "a"}, 3), ElementsAre(same_as_later, low));
}

TEST_P(Claim, OfTypesTakesWorkflowsOfThoseTypesToo) {
  const auto workflow = [&](const std::string& type) {
    Submission submission = Task(type).kind(hapax::Kind::workflow);
    submission.execution.idempotency_key = "w-" + type;
    submission.execution.identity = workflow_identity("default", "w-" + type);
    return submitted(submission).id;
  };
  const auto turn = workflow("a");
  workflow("b");
  const auto task = submitted(Task("a").priority(1)).id;
  ClaimRequest request = claim_request({"work"}, 10);
  request.workflows = true;
  request.types = {"a"};
  EXPECT_THAT(ids_of(store().claim({&request, 1}).at(0).executions), ElementsAre(task, turn));
}

TEST_P(Claim, OfTypesSaysWhenOneOfThoseBecomesDue) {
  submitted(Task("a").delay(1s));
  submitted(Task("b").delay(5s));
  ClaimRequest request = claim_request({"work"}, 10);
  request.types = {"b"};
  EXPECT_EQ(store().claim({&request, 1}).at(0).next_at, now() + 5s);
  clock_.advance(5s);
  EXPECT_EQ(claimed_of({"b"}).size(), 1u);
}

TEST_P(Claim, OfAnyTypeFindsEachOfMany) {
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(submitted(Task("type-" + std::to_string(i * 7 % 30))).id);
  EXPECT_EQ(claimed_ids({"work"}, 10), std::vector(ids.begin(), ids.begin() + 10));
  EXPECT_EQ(claimed_ids(), std::vector(ids.begin() + 10, ids.end()));
}

TEST_P(Claim, OrderHoldsOverSeveralClaims) {
  const auto second = submitted(Task()).id;
  const auto first = submitted(Task().priority(1)).id;
  EXPECT_THAT(claimed_ids({"work"}, 1), ElementsAre(first));
  EXPECT_THAT(claimed_ids({"work"}, 1), ElementsAre(second));
}

TEST_P(Claim, MergesItsQueuesByTheSameOrder) {
  const auto a_low = submitted(Task().queue("a")).id;
  const auto b_high = submitted(Task().queue("b").priority(2)).id;
  const auto a_high = submitted(Task().queue("a").priority(2)).id;
  const auto c_middle = submitted(Task().queue("c").priority(1)).id;
  EXPECT_THAT(claimed_ids({"a", "b", "c"}, 3), ElementsAre(b_high, a_high, c_middle));
  EXPECT_THAT(claimed_ids({"c", "b", "a"}), ElementsAre(a_low));
}

TEST_P(Claim, LeavesOtherQueuesAndNamespacesAlone) {
  submitted(Task().queue("other"));
  submitted(Task().name_space("tenant"));
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Claim, NoMoreThanTheLimit) {
  for (int i = 0; i < 3; ++i) submitted(Task());
  EXPECT_EQ(claimed_ids({"work"}, 2).size(), 2u);
  EXPECT_EQ(claimed_ids({"work"}, 2).size(), 1u);
}

TEST_P(Claim, DelayedTaskWaitsForItsTime) {
  submitted(Task().delay(10s));
  clock_.advance(10s - 1ms);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  clock_.advance(1ms);
  EXPECT_EQ(claimed_ids().size(), 1u);
}

TEST_P(Claim, DelayedTaskOfHighPriorityDoesNotHoldBackOthers) {
  submitted(Task().priority(9).delay(1h));
  const auto due = submitted(Task()).id;
  EXPECT_THAT(claimed_ids(), ElementsAre(due));
}

TEST_P(Claim, DelayedTaskOfHighPriorityGoesFirstOnceItIsDue) {
  const auto high = submitted(Task().priority(9).delay(1s)).id;
  const auto low = submitted(Task()).id;
  clock_.advance(1s);
  EXPECT_THAT(claimed_ids(), ElementsAre(high, low));
}

TEST_P(Claim, NextAtIsTheFirstDelayedTaskOfItsQueues) {
  submitted(Task().queue("a").delay(20s));
  submitted(Task().queue("b").delay(10s).priority(-5));
  submitted(Task().queue("b").delay(30s).priority(5));
  submitted(Task().queue("c").delay(1s));
  EXPECT_EQ(claim({"a", "b"}).next_at, now() + 10s);
}

TEST_P(Claim, NextAtIsAbsentWhenTheLimitWasReached) {
  submitted(Task());
  submitted(Task().delay(10s));
  EXPECT_EQ(claim({"work"}, 1).next_at, std::nullopt);
  EXPECT_EQ(claim({"work"}, 1).next_at, now() + 10s);
}

TEST_P(Claim, NextAtIsAbsentWhenOnlyAChangeHelps) {
  set_policy("work", {.max_running = 1});
  submitted(Task());
  submitted(Task());
  EXPECT_EQ(claim().next_at, std::nullopt);
  EXPECT_EQ(claim().next_at, std::nullopt);
}

TEST_P(Claim, RequestsOfABatchAreServedInOrder) {
  const auto first = submitted(Task()).id;
  const auto second = submitted(Task()).id;
  const std::vector<ClaimRequest> requests{claim_request({"work"}, 1), claim_request({"work"}, 5),
                                           claim_request({"work"}, 5)};
  const auto outcomes = store().claim(requests);
  EXPECT_THAT(ids_of(outcomes.at(0).executions), ElementsAre(first));
  EXPECT_THAT(ids_of(outcomes.at(1).executions), ElementsAre(second));
  EXPECT_EQ(outcomes.at(1).executions.at(0).lease_secret, requests[1].secret);
  EXPECT_THAT(outcomes.at(2).executions, IsEmpty());
}

TEST_P(Claim, PausedQueueGivesNothingAndNoNextAt) {
  set_policy("work", {.paused = true});
  submitted(Task());
  submitted(Task().delay(1s));
  const ClaimOutcome outcome = claim();
  EXPECT_THAT(outcome.executions, IsEmpty());
  EXPECT_EQ(outcome.next_at, std::nullopt);
}

TEST_P(Claim, PausedQueueDoesNotHoldBackTheOthers) {
  set_policy("a", {.paused = true});
  submitted(Task().queue("a").priority(5));
  const auto open = submitted(Task().queue("b")).id;
  EXPECT_THAT(claimed_ids({"a", "b"}), ElementsAre(open));
}

TEST_P(Claim, UnpausedQueueGoesOn) {
  set_policy("work", {.paused = true});
  const auto task = submitted(Task()).id;
  claim();
  set_policy("work", {});
  EXPECT_THAT(claimed_ids(), ElementsAre(task));
}

TEST_P(Claim, ClosedTasksAreNotHandedOut) {
  owner_in(Status::completed, Task());
  owner_in(Status::failed, Task());
  owner_in(Status::cancelled, Task());
  owner_in(Status::timed_out, Task());
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

}  // namespace
}  // namespace hapax
