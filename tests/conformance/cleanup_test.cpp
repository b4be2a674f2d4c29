#include "conformance/store_test.h"
#include "core/retry.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A sweep need not have read them.
std::vector<Changed> without_types(std::vector<Changed> changed) {
  for (Changed& each : changed) each.type.clear();
  return changed;
}

class Sweep : public StoreTest {};
HAPAX_FOR_ALL_STORES(Sweep);

TEST_P(Sweep, OfNothingDoesNothing) {
  submitted(Task());
  EXPECT_EQ(store().sweep(100), SweepOutcome{});
}

TEST_P(Sweep, LostLeaseIsAtOnceClaimableAgain) {
  const auto id = submitted(Task()).id;
  claim_one();
  clock_.advance(60s);
  const SweepOutcome outcome = store().sweep(100);
  EXPECT_THAT(without_types(outcome.effects.ready), ElementsAre(Changed{id, "default", "work"}));
  EXPECT_THAT(outcome.effects.closed, IsEmpty());
  const Execution again = claim_one();
  EXPECT_EQ(again.id, id);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_EQ(again.failed_attempts.at(0).error.type, "LeaseExpired");
}

TEST_P(Sweep, LeaseIsHeldUntilItsLastMillisecond) {
  submitted(Task());
  claim_one();
  clock_.advance(60s - 1ms);
  EXPECT_THAT(store().sweep(100).effects.ready, IsEmpty());
}

TEST_P(Sweep, LastLostLeaseFailsTheTask) {
  const auto id = submitted(Task().max_attempts(1)).id;
  claim_one();
  clock_.advance(60s);
  EXPECT_THAT(without_types(store().sweep(100).effects.closed), ElementsAre(Changed{id, "default", "work"}));
  EXPECT_EQ(status_of(id), Status::failed);
}

TEST_P(Sweep, TimedOutAttemptIsTriedAgainAfterItsBackoff) {
  const auto id = submitted(Task().timeout(5s)).id;
  claim_one();
  clock_.advance(5s);
  EXPECT_THAT(ids_of(store().sweep(100).effects.ready), ElementsAre(id));
  EXPECT_EQ(find(id)->run_at, now() + backoff({}, id, 1));
  EXPECT_EQ(find(id)->error->type, "AttemptTimeout");
}

TEST_P(Sweep, LastTimedOutAttemptTimesTheTaskOut) {
  const auto id = submitted(Task().timeout(5s).max_attempts(1)).id;
  claim_one();
  clock_.advance(5s);
  EXPECT_THAT(ids_of(store().sweep(100).effects.closed), ElementsAre(id));
  EXPECT_EQ(status_of(id), Status::timed_out);
}

TEST_P(Sweep, DeadlineEndsAPendingTask) {
  const auto id = submitted(Task().deadline(5s).delay(1h)).id;
  clock_.advance(5s);
  EXPECT_THAT(ids_of(store().sweep(100).effects.closed), ElementsAre(id));
  EXPECT_EQ(status_of(id), Status::timed_out);
}

TEST_P(Sweep, DeadlineEndsARunningTaskWithAttemptsLeft) {
  const auto id = submitted(Task().deadline(5s)).id;
  const LeaseToken token = token_of(claim_one());
  clock_.advance(5s);
  store().sweep(100);
  EXPECT_EQ(status_of(id), Status::timed_out);
  EXPECT_FALSE(complete(token).accepted);
}

TEST_P(Sweep, CancelGraceClosesARunningTask) {
  const auto id = owner_in(Status::running, Task()).id;
  cancel(id);
  clock_.advance(30s);
  EXPECT_THAT(ids_of(store().sweep(100).effects.closed), ElementsAre(id));
  EXPECT_EQ(status_of(id), Status::cancelled);
}

TEST_P(Sweep, OldestFirstAndNoMoreThanTheLimit) {
  const auto third = submitted(Task().deadline(3s)).id;
  const auto first = submitted(Task().deadline(1s)).id;
  const auto second = submitted(Task().deadline(2s)).id;
  clock_.advance(10s);
  const SweepOutcome outcome = store().sweep(2);
  EXPECT_THAT(ids_of(outcome.effects.closed), ElementsAre(first, second));
  EXPECT_TRUE(outcome.more);
  EXPECT_EQ(outcome.effects.next_due, std::nullopt);
  const SweepOutcome rest = store().sweep(2);
  EXPECT_THAT(ids_of(rest.effects.closed), ElementsAre(third));
  EXPECT_FALSE(rest.more);
}

TEST_P(Sweep, EqualTimesGoById) {
  const auto first = submitted(Task().deadline(1s)).id;
  const auto second = submitted(Task().deadline(1s)).id;
  clock_.advance(1s);
  EXPECT_THAT(ids_of(store().sweep(100).effects.closed), ElementsAre(first, second));
}

TEST_P(Sweep, NextDueIsWhatEndsNext) {
  submitted(Task().deadline(3min));
  submitted(Task().deadline(2min).queue("other"));
  EXPECT_EQ(store().sweep(100).effects.next_due, now() + 2min);
  claim_one();
  EXPECT_EQ(store().sweep(100).effects.next_due, now() + 60s);
}

TEST_P(Sweep, ReachesEveryNamespace) {
  const auto id = submitted(Task().name_space("tenant").deadline(1s)).id;
  clock_.advance(1s);
  EXPECT_THAT(without_types(store().sweep(100).effects.closed), ElementsAre(Changed{id, "tenant", "work"}));
}

TEST_P(Sweep, AgainChangesNothing) {
  submitted(Task());
  claim_one();
  clock_.advance(60s);
  store().sweep(100);
  EXPECT_EQ(store().sweep(100), SweepOutcome{});
}

class Purge : public StoreTest {};
HAPAX_FOR_ALL_STORES(Purge);

TEST_P(Purge, DeletesWhatIsClosedForLongerThanRetention) {
  for (const Status status : {Status::completed, Status::failed, Status::cancelled, Status::timed_out}) {
    owner_in(status, Task());
  }
  set_retention("work", 1h);
  clock_.advance(1h - 2ms);
  EXPECT_EQ(store().purge(100).executions, 0);
  clock_.advance(2ms);
  EXPECT_EQ(store().purge(100).executions, 4);
  EXPECT_THAT(store().list({.name_space = "default"}), IsEmpty());
}

TEST_P(Purge, LeavesWhatIsOpen) {
  submitted(Task());
  owner_in(Status::running, Task().queue("other"));
  clock_.advance(24h * 365);
  EXPECT_EQ(store().purge(100).executions, 0);
}

TEST_P(Purge, EachQueueHasItsOwnRetention) {
  set_retention("brief", 1h);
  const auto brief = owner_in(Status::cancelled, Task().queue("brief")).id;
  const auto kept = owner_in(Status::cancelled, Task().queue("kept")).id;
  clock_.advance(1h);
  EXPECT_EQ(store().purge(100).executions, 1);
  EXPECT_EQ(find(brief), std::nullopt);
  EXPECT_TRUE(find(kept).has_value());
}

TEST_P(Purge, WorkflowsAreKeptForThirtyDays) {
  const auto workflow = owner_in(Status::cancelled, Task().kind(Kind::workflow)).id;
  const auto task = owner_in(Status::cancelled, Task()).id;
  clock_.advance(24h * 7);
  store().purge(100);
  EXPECT_TRUE(find(workflow).has_value());
  EXPECT_EQ(find(task), std::nullopt);
  clock_.advance(24h * 23);
  store().purge(100);
  EXPECT_EQ(find(workflow), std::nullopt);
}

TEST_P(Purge, NoMoreThanTheLimitOldestFirst) {
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(owner_in(Status::cancelled, Task()).id);
    clock_.advance(1s);
  }
  clock_.advance(24h * 7);
  const PurgeOutcome outcome = store().purge(2);
  EXPECT_EQ(outcome.executions, 2);
  EXPECT_TRUE(outcome.more);
  EXPECT_THAT(ids_of(store().list({.name_space = "default"})), ElementsAre(ids[4], ids[3], ids[2]));
  store().purge(2);
  const PurgeOutcome last = store().purge(2);
  EXPECT_EQ(last.executions, 1);
  EXPECT_FALSE(last.more);
}

TEST_P(Purge, GoesThroughNamespacesAndQueuesInOrder) {
  const auto b = owner_in(Status::cancelled, Task().queue("b")).id;
  clock_.advance(1s);
  const auto a = owner_in(Status::cancelled, Task().queue("a")).id;
  clock_.advance(24h * 7);
  store().purge(1);
  EXPECT_EQ(find(a), std::nullopt);
  EXPECT_TRUE(find(b).has_value());
}

TEST_P(Purge, StepsStayAsLongAsTheirWorkflow) {
  const auto workflow = submitted(Task().kind(Kind::workflow).queue("flows")).id;
  const auto step = owner_in(Status::cancelled, Task().parent(workflow)).id;
  clock_.advance(24h * 7);
  EXPECT_EQ(store().purge(100).executions, 0);
  cancel(workflow);
  clock_.advance(24h * 30);
  store().purge(100);
  store().purge(100);
  EXPECT_EQ(find(workflow), std::nullopt);
  EXPECT_EQ(find(step), std::nullopt);
}

TEST_P(Purge, StepsStayWithTheirWorkflowEvenWithoutRetention) {
  set_retention("work", 0ms);
  const auto workflow = submitted(Task().kind(Kind::workflow).queue("flows")).id;
  const auto step = submitted(Task().parent(workflow)).id;
  EXPECT_EQ(complete(token_of(claim_one())).purged, std::nullopt);
  EXPECT_EQ(status_of(step), Status::completed);
}

TEST_P(Purge, IdentitiesAndRequestsHaveTheSameLimit) {
  set_retention("work", 0ms);
  for (int i = 0; i < 3; ++i) cancel(submitted(Task().key("k" + std::to_string(i)).ttl(1h)).id);
  clock_.advance(24h * 7);
  const PurgeOutcome first = store().purge(2);
  EXPECT_EQ(first.identities, 2);
  EXPECT_EQ(first.requests, 2);
  EXPECT_TRUE(first.more);
  const PurgeOutcome second = store().purge(2);
  EXPECT_EQ(second.identities, 1);
  EXPECT_EQ(second.requests, 1);
  EXPECT_FALSE(second.more);
}

// Otherwise what closed in an hour of much work would leave at a batch an hour.
TEST_P(Purge, SaysThatThereAreMoreReportsToForget) {
  set_retention("work", 10ms);
  constexpr int kReports = 250;
  for (int i = 0; i < kReports; ++i) submitted(Task());
  for (const Execution& claimed : claim({"work"}, kReports).executions) complete(token_of(claimed));
  clock_.advance(10ms);
  while (store().purge(1000).executions > 0) {}
  clock_.advance(kReportMemory);
  int batches = 1;
  while (store().purge(100).more_reports) ++batches;
  EXPECT_TRUE(batches == 1 || batches == 3) << batches << ": a store forgets all at once, or in batches of the limit";
  EXPECT_FALSE(store().purge(100).more_reports);
}

TEST_P(Purge, AgainFindsNothing) {
  owner_in(Status::cancelled, Task().key("k"));
  clock_.advance(24h * 8);
  store().purge(100);
  EXPECT_EQ(store().purge(100), PurgeOutcome{});
}

}  // namespace
}  // namespace hapax
