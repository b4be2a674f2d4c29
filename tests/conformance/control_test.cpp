#include "conformance/store_test.h"

namespace hapax {
namespace {

using Action = ControlRequest::Action;
using Kind = ControlOutcome::Kind;
using testing::ElementsAre;

class Control : public StoreTest {};
HAPAX_FOR_ALL_STORES(Control);

TEST_P(Control, CancelClosesAPendingTaskAtOnce) {
  const auto id = submitted(Task()).id;
  const ControlOutcome outcome = cancel(id);
  EXPECT_EQ(outcome.kind, Kind::done);
  EXPECT_TRUE(outcome.changed);
  EXPECT_FALSE(outcome.replayed);
  EXPECT_THAT(ids_of(outcome.effects.closed), ElementsAre(id));
  EXPECT_EQ(outcome.status, Status::cancelled);
  EXPECT_EQ(find(id)->finished_at, now());
}

TEST_P(Control, CancelAsksARunningTaskToStop) {
  set_policy("work", {.cancel_grace = 7s});
  const auto id = owner_in(Status::running, Task()).id;
  const ControlOutcome outcome = cancel(id);
  EXPECT_TRUE(outcome.changed);
  EXPECT_TRUE(outcome.effects.closed.empty());
  EXPECT_EQ(outcome.status, Status::running);
  EXPECT_EQ(find(id)->cancel_requested_at, now());
  EXPECT_EQ(find(id)->cancel_by, now() + 7s);
}

TEST_P(Control, CancelOfARunningTaskIsRequestedOnce) {
  const auto id = owner_in(Status::running, Task()).id;
  cancel(id);
  clock_.advance(5s);
  EXPECT_FALSE(cancel(id).changed);
  EXPECT_EQ(find(id)->cancel_by, now() + 25s);
}

TEST_P(Control, CancelOfAClosedTaskChangesNothing) {
  for (const Status status : {Status::completed, Status::failed, Status::cancelled, Status::timed_out}) {
    SCOPED_TRACE(to_string(status));
    const Execution task = owner_in(status, Task());
    const ControlOutcome outcome = cancel(task.id);
    EXPECT_EQ(outcome.kind, Kind::done);
    EXPECT_FALSE(outcome.changed);
    EXPECT_TRUE(outcome.effects.closed.empty());
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(find(task.id), task);
  }
}

TEST_P(Control, CancelOfAnUnknownTaskIsNotFound) { EXPECT_EQ(cancel(test_id(987'654'321)).kind, Kind::not_found); }

TEST_P(Control, CancelFromAnotherNamespaceIsNotFound) {
  const auto id = submitted(Task().name_space("tenant")).id;
  EXPECT_EQ(cancel(id).kind, Kind::not_found);
  EXPECT_EQ(find(id, "tenant")->status, Status::pending);
}

TEST_P(Control, RetryGivesNewAttempts) {
  const auto id = owner_in(Status::failed, Task().max_attempts(2)).id;
  clock_.advance(1h);
  const ControlOutcome outcome = retry(id);
  EXPECT_EQ(outcome.kind, Kind::done);
  EXPECT_TRUE(outcome.changed);
  EXPECT_EQ(outcome.status, Status::pending);
  EXPECT_THAT(ids_of(outcome.effects.ready), ElementsAre(id));
  const Execution task = find(id).value();
  EXPECT_EQ(task.run_at, now());
  EXPECT_EQ(task.attempt_limit, 3);
  EXPECT_EQ(task.finished_at, std::nullopt);
  EXPECT_EQ(claim_one().attempt, 2);
}

TEST_P(Control, RetryTakesFailedCancelledAndTimedOutOnly) {
  for (const Status status : {Status::failed, Status::cancelled, Status::timed_out}) {
    SCOPED_TRACE(to_string(status));
    EXPECT_EQ(retry(owner_in(status, Task()).id).kind, Kind::done);
    claim();
  }
  for (const Status status : {Status::pending, Status::completed}) {
    SCOPED_TRACE(to_string(status));
    const Execution task = owner_in(status, Task().queue(std::string(to_string(status))));
    EXPECT_EQ(retry(task.id).kind, Kind::not_retryable);
    EXPECT_EQ(find(task.id), task);
  }
}

TEST_P(Control, RetriedTaskHoldsItsIdentityAgain) {
  const auto id = owner_in(Status::failed, Task().key("k")).id;
  retry(id);
  const SubmitOutcome outcome = submit(Task().key("k"));
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::duplicate);
  EXPECT_EQ(outcome.execution.id, id);
}

TEST_P(Control, RetryKeepsTheExpiryOfItsEntry) {
  const Execution task = owner_in(Status::failed, Task().key("k").ttl(1h));
  clock_.advance(2h);
  retry(task.id);
  const FoundIdentity found = store().find_identity(task.identity->hash).value();
  EXPECT_EQ(found.entry.owner, task.id);
  EXPECT_EQ(found.entry.expires_at, task.created_at + 1h);
  EXPECT_TRUE(found.live);
}

TEST_P(Control, RetryAfterReleaseOwnsTheIdentityWithoutExpiry) {
  const Execution task = owner_in(Status::failed, Task().key("k").ttl(1h));
  store().release_identity("default", task.identity->hash);
  retry(task.id);
  const FoundIdentity found = store().find_identity(task.identity->hash).value();
  EXPECT_EQ(found.entry.owner, task.id);
  EXPECT_EQ(found.entry.input_hash, task.input_hash);
  EXPECT_EQ(found.entry.expires_at, std::nullopt);
}

TEST_P(Control, RetryTakesOverADeadEntryOfAnother) {
  const Execution task = owner_in(Status::failed, Task().key("k"));
  owner_in(Status::completed, Task().key("k").input("2").ttl(1h));
  clock_.advance(1h);
  EXPECT_EQ(retry(task.id).kind, Kind::done);
  const FoundIdentity found = store().find_identity(task.identity->hash).value();
  EXPECT_EQ(found.entry.owner, task.id);
  EXPECT_EQ(found.entry.input_hash, task.input_hash);
}

TEST_P(Control, RetryTakesOverADeadTombstoneOfAnother) {
  const Execution task = owner_in(Status::failed, Task().key("k"));
  set_retention("brief", 0ms);
  submitted(Task().queue("brief").key("k").ttl(1h));
  complete(token_of(claim_one("brief")));
  clock_.advance(1h);
  EXPECT_EQ(retry(task.id).kind, Kind::done);
  EXPECT_EQ(store().find_identity(task.identity->hash)->entry.tombstone, std::nullopt);
}

TEST_P(Control, RetryIsRefusedWhileAnotherOwnsTheIdentity) {
  const Execution task = owner_in(Status::failed, Task().key("k"));
  const Execution successor = submitted(Task().key("k"));
  const ControlOutcome outcome = retry(task.id);
  EXPECT_EQ(outcome.kind, Kind::identity_taken);
  EXPECT_EQ(outcome.other, successor.id);
  EXPECT_EQ(find(task.id), task);
}

TEST_P(Control, RetryIsRefusedByALiveTombstoneOfAnother) {
  const Execution task = owner_in(Status::failed, Task().key("k"));
  set_retention("brief", 0ms);
  const Execution successor = submitted(Task().queue("brief").key("k").ttl(1h));
  complete(token_of(claim_one("brief")));
  const ControlOutcome outcome = retry(task.id);
  EXPECT_EQ(outcome.kind, Kind::identity_taken);
  EXPECT_EQ(outcome.other, successor.id);
}

TEST_P(Control, RetryDropsADeadlineThatHasPassed) {
  const auto id = owner_in(Status::timed_out, Task()).id;
  retry(id);
  EXPECT_EQ(find(id)->deadline_at, std::nullopt);
}

class RequestKeys : public StoreTest {};
HAPAX_FOR_ALL_STORES(RequestKeys);

TEST_P(RequestKeys, SameOperationAgainIsReplayed) {
  const auto id = submitted(Task()).id;
  const ControlOutcome first = control(Action::cancel, id, "r");
  clock_.advance(1h);
  const ControlOutcome again = control(Action::cancel, id, "r");
  EXPECT_EQ(again.kind, Kind::done);
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.changed, first.changed);
  EXPECT_EQ(again.status, first.status);
}

TEST_P(RequestKeys, ReplayTellsTheStatusOfThenNotOfNow) {
  const auto id = owner_in(Status::running, Task()).id;
  control(Action::cancel, id, "r");
  clock_.advance(30s);
  store().sweep(100);
  ASSERT_EQ(status_of(id), Status::cancelled);
  EXPECT_EQ(control(Action::cancel, id, "r").status, Status::running);
}

TEST_P(RequestKeys, ReplayOfARetryDoesNotRetryAgain) {
  const auto id = owner_in(Status::failed, Task()).id;
  control(Action::retry, id, "r");
  fail(token_of(claim_one()), false);
  const ControlOutcome again = control(Action::retry, id, "r");
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.status, Status::pending);
  EXPECT_EQ(status_of(id), Status::failed);
}

TEST_P(RequestKeys, UnchangedOutcomeIsReplayedAsUnchanged) {
  const auto id = owner_in(Status::completed, Task()).id;
  control(Action::cancel, id, "r");
  const ControlOutcome again = control(Action::cancel, id, "r");
  EXPECT_TRUE(again.replayed);
  EXPECT_FALSE(again.changed);
}

TEST_P(RequestKeys, OtherTargetUnderTheSameKeyIsAConflict) {
  const auto first = submitted(Task()).id;
  const auto second = submitted(Task()).id;
  control(Action::cancel, first, "r");
  EXPECT_EQ(control(Action::cancel, second, "r").kind, Kind::key_conflict);
  EXPECT_EQ(status_of(second), Status::pending);
}

TEST_P(RequestKeys, OtherActionUnderTheSameKeyIsAConflict) {
  const auto id = submitted(Task()).id;
  control(Action::cancel, id, "r");
  EXPECT_EQ(control(Action::retry, id, "r").kind, Kind::key_conflict);
  EXPECT_EQ(status_of(id), Status::cancelled);
}

TEST_P(RequestKeys, ConflictDoesNotTakeTheKeyOver) {
  const auto id = submitted(Task()).id;
  control(Action::cancel, id, "r");
  control(Action::retry, id, "r");
  EXPECT_TRUE(control(Action::cancel, id, "r").replayed);
}

TEST_P(RequestKeys, NotFoundIsRememberedAsFailed) {
  const Submission late = Task();
  control(Action::cancel, late.execution.id, "r");
  submit(late);
  const ControlOutcome again = control(Action::cancel, late.execution.id, "r");
  EXPECT_EQ(again.kind, Kind::failed_before);
  EXPECT_EQ(again.before, Kind::not_found);
  EXPECT_EQ(status_of(late.execution.id), Status::pending);
}

TEST_P(RequestKeys, NotRetryableIsRememberedAsFailed) {
  const auto id = submitted(Task()).id;
  control(Action::retry, id, "r");
  cancel(id);
  const ControlOutcome again = control(Action::retry, id, "r");
  EXPECT_EQ(again.kind, Kind::failed_before);
  EXPECT_EQ(again.before, Kind::not_retryable);
  EXPECT_EQ(status_of(id), Status::cancelled);
}

TEST_P(RequestKeys, IdentityTakenIsRememberedAsFailed) {
  const Execution task = owner_in(Status::failed, Task().key("k"));
  submitted(Task().key("k"));
  control(Action::retry, task.id, "r");
  const ControlOutcome again = control(Action::retry, task.id, "r");
  EXPECT_EQ(again.kind, Kind::failed_before);
  EXPECT_EQ(again.before, Kind::identity_taken);
}

TEST_P(RequestKeys, OtherOperationAfterAFailureIsAConflict) {
  const auto id = submitted(Task()).id;
  control(Action::retry, id, "r");
  EXPECT_EQ(control(Action::cancel, id, "r").kind, Kind::key_conflict);
}

TEST_P(RequestKeys, AreApartPerNamespace) {
  const auto here = submitted(Task()).id;
  const auto there = submitted(Task().name_space("tenant")).id;
  control(Action::cancel, here, "r");
  const ControlRequest request{"tenant", "r", Action::cancel, there};
  EXPECT_EQ(store().control({&request, 1}).at(0).kind, Kind::done);
}

TEST_P(RequestKeys, ExpiredKeyIsAsIfAbsent) {
  const auto first = submitted(Task()).id;
  const auto second = submitted(Task()).id;
  control(Action::cancel, first, "r");
  clock_.advance(24h * 7);
  const ControlOutcome outcome = control(Action::cancel, second, "r");
  EXPECT_EQ(outcome.kind, Kind::done);
  EXPECT_FALSE(outcome.replayed);
  EXPECT_EQ(status_of(second), Status::cancelled);
}

TEST_P(RequestKeys, LiveUntilTheLastMillisecond) {
  const auto id = submitted(Task()).id;
  ControlRequest request{"default", "r", Action::cancel, id};
  request.request_ttl = 10s;
  store().control({&request, 1});
  clock_.advance(10s - 1ms);
  EXPECT_TRUE(store().control({&request, 1}).at(0).replayed);
  clock_.advance(1ms);
  EXPECT_FALSE(store().control({&request, 1}).at(0).replayed);
}

TEST_P(RequestKeys, PurgeDeletesTheExpiredOnes) {
  const auto id = submitted(Task()).id;
  control(Action::cancel, id, "r");
  EXPECT_EQ(store().purge(100).requests, 0);
  clock_.advance(24h * 7);
  EXPECT_EQ(store().purge(100).requests, 1);
  EXPECT_EQ(store().purge(100).requests, 0);
}

TEST_P(RequestKeys, SameKeyTwiceInABatchRunsOnce) {
  const auto id = submitted(Task()).id;
  const ControlRequest request{"default", "r", Action::cancel, id};
  const std::vector<ControlRequest> twice{request, request};
  const auto outcomes = store().control(twice);
  EXPECT_FALSE(outcomes.at(0).replayed);
  EXPECT_TRUE(outcomes.at(1).replayed);
}

TEST_P(RequestKeys, ReplayOutlivesTheExecution) {
  set_retention("work", 0ms);
  const auto id = submitted(Task()).id;
  control(Action::cancel, id, "r");
  ASSERT_EQ(find(id), std::nullopt);
  const ControlOutcome again = control(Action::cancel, id, "r");
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.status, Status::cancelled);
}

}  // namespace
}  // namespace hapax
