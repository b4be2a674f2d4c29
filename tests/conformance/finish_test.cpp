#include "conformance/store_test.h"
#include "core/retry.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Finish : public StoreTest {
 protected:
  // A task that was claimed, and lost to another worker.
  std::pair<Execution, Execution> lost_and_taken_over() {
    submitted(Task());
    const Execution lost = claim_one();
    clock_.advance(60s);
    store().sweep(100);
    return {lost, claim_one()};
  }
};
HAPAX_FOR_ALL_STORES(Finish);

TEST_P(Finish, CompletedKeepsTheResult) {
  const auto id = submitted(Task()).id;
  const Execution claimed = claim_one();
  clock_.advance(1s);
  const FinishOutcome outcome = complete(token_of(claimed), R"({"ok":true})");
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.status, Status::completed);
  EXPECT_EQ(outcome.name_space, "default");
  EXPECT_EQ(outcome.queue, "work");
  EXPECT_EQ(outcome.run_at, std::nullopt);
  EXPECT_EQ(outcome.purged, std::nullopt);
  const Execution stored = find(id).value();
  EXPECT_EQ(stored.result, R"({"ok":true})");
  EXPECT_EQ(stored.finished_at, now());
  EXPECT_EQ(stored.lease_expires_at, std::nullopt);
}

TEST_P(Finish, NothingReturnedIsNotTheJsonNull) {
  const auto first = submitted(Task()).id;
  complete(token_of(claim_one()), std::nullopt);
  EXPECT_EQ(find(first)->result, std::nullopt);
  const auto second = submitted(Task()).id;
  complete(token_of(claim_one()), "null");
  EXPECT_EQ(find(second)->result, "null");
}

TEST_P(Finish, RetryableFailureWaitsForItsBackoff) {
  const auto id = submitted(Task()).id;
  const Execution claimed = claim_one();
  clock_.advance(1s);
  const Time run_at = now() + backoff(claimed.retry, id, 1);
  const FinishOutcome outcome = fail(token_of(claimed));
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.status, Status::pending);
  EXPECT_EQ(outcome.run_at, run_at);
  const Execution stored = find(id).value();
  EXPECT_EQ(stored.run_at, run_at);
  EXPECT_EQ(stored.error, (AttemptError{"CardDeclined", "no funds"}));
}

TEST_P(Finish, EveryAttemptsErrorIsKept) {
  const auto id = submitted(Task().max_attempts(2)).id;
  const Execution first = claim_one();
  const Time first_ended = now();
  fail(token_of(first));
  clock_.advance(2s);
  const Execution second = claim_one();
  fail(token_of(second));
  const Execution stored = find(id).value();
  EXPECT_EQ(stored.status, Status::failed);
  const AttemptError error{"CardDeclined", "no funds"};
  EXPECT_THAT(
      stored.failed_attempts,
      ElementsAre(AttemptRecord{1, "worker-1", *first.started_at, first_ended, error, *first.lease_secret, true},
                  AttemptRecord{2, "worker-1", *second.started_at, now(), error, *second.lease_secret, true}));
}

TEST_P(Finish, LastAttemptFails) {
  submitted(Task().max_attempts(1));
  const FinishOutcome outcome = fail(token_of(claim_one()));
  EXPECT_EQ(outcome.status, Status::failed);
  EXPECT_EQ(outcome.run_at, std::nullopt);
}

TEST_P(Finish, FinalErrorIsNotTriedAgain) {
  submitted(Task());
  EXPECT_EQ(fail(token_of(claim_one()), false).status, Status::failed);
}

TEST_P(Finish, RepeatedCompletionIsAcceptedAgainAndChangesNothing) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  const FinishOutcome first = complete(token, "1");
  const Execution stored = find(id).value();
  clock_.advance(1h);
  EXPECT_EQ(complete(token, "1"), first);
  EXPECT_EQ(find(id), stored);
}

TEST_P(Finish, AnotherResultUnderAUsedTokenIsRefused) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  complete(token, "1");
  EXPECT_FALSE(complete(token, "2").accepted);
  EXPECT_FALSE(fail(token).accepted);
  EXPECT_EQ(find(id)->result, "1");
}

TEST_P(Finish, AResultAfterAReportedFailureIsRefused) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  fail(token);
  EXPECT_FALSE(complete(token, "1").accepted);
  EXPECT_EQ(find(id)->status, Status::pending);
}

TEST_P(Finish, RepeatedFailureIsAcceptedAgainAndChangesNothing) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  const FinishOutcome first = fail(token);
  const Execution stored = find(id).value();
  EXPECT_EQ(fail(token), first);
  EXPECT_EQ(find(id), stored);
}

TEST_P(Finish, RepeatedFailureWhileTheNextAttemptRunsSaysRunning) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  fail(token);
  clock_.advance(2s);
  claim_one();
  const FinishOutcome again = fail(token);
  EXPECT_TRUE(again.accepted);
  EXPECT_EQ(again.status, Status::running);
  EXPECT_EQ(find(id)->attempt, 2);
}

TEST_P(Finish, RepetitionWithinABatchIsAccepted) {
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  const std::vector<Report> reports{{token, Report::Completed{"1"}}, {token, Report::Completed{"1"}}};
  const auto outcomes = store().finish(reports);
  EXPECT_TRUE(outcomes.at(0).accepted);
  EXPECT_TRUE(outcomes.at(1).accepted);
}

TEST_P(Finish, StaleTokenChangesNothing) {
  const auto [lost, current] = lost_and_taken_over();
  EXPECT_FALSE(complete(token_of(lost)).accepted);
  EXPECT_FALSE(fail(token_of(lost), false).accepted);
  EXPECT_FALSE(extend(token_of(lost)).ok);
  EXPECT_EQ(find(current.id), current);
}

TEST_P(Finish, TokenOfALostLeaseIsStaleEvenBeforeTheNextClaim) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  clock_.advance(60s);
  store().sweep(100);
  EXPECT_FALSE(complete(token).accepted);
  EXPECT_EQ(status_of(id), Status::pending);
}

TEST_P(Finish, ReportAfterTheLeaseEndedCountsWhileNobodyTookTheTaskAway) {
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  clock_.advance(61s);
  EXPECT_TRUE(complete(token).accepted);
}

TEST_P(Finish, WrongSecretIsStale) {
  const auto id = submitted(Task()).id;
  LeaseToken token = token_of(claim_one());
  token.secret = test_secret(999'999);
  EXPECT_FALSE(complete(token).accepted);
  EXPECT_EQ(status_of(id), Status::running);
}

TEST_P(Finish, WrongAttemptIsStale) {
  submitted(Task());
  LeaseToken token = token_of(claim_one());
  token.attempt = 2;
  EXPECT_FALSE(complete(token).accepted);
}

TEST_P(Finish, UnknownExecutionIsNotAccepted) {
  EXPECT_FALSE(complete({test_id(987'654'321), 1, test_secret(1)}).accepted);
  EXPECT_FALSE(extend({test_id(987'654'321), 1, test_secret(1)}).ok);
}

TEST_P(Finish, BatchAnswersEachInOrder) {
  submitted(Task());
  submitted(Task());
  const auto claimed = claim().executions;
  LeaseToken wrong = token_of(claimed.at(0));
  wrong.attempt = 9;
  const std::vector<Report> reports{{wrong, Report::Completed{}},
                                    {token_of(claimed.at(1)), Report::Completed{"1"}},
                                    {token_of(claimed.at(0)), Report::Failed{{"E", "m"}, false}}};
  const auto outcomes = store().finish(reports);
  EXPECT_FALSE(outcomes.at(0).accepted);
  EXPECT_EQ(outcomes.at(1).status, Status::completed);
  EXPECT_EQ(outcomes.at(2).status, Status::failed);
}

TEST_P(Finish, ResultAfterACancelWasRequestedStillCounts) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  cancel(id);
  EXPECT_EQ(complete(token).status, Status::completed);
}

TEST_P(Finish, FailureAfterACancelWasRequestedIsCancelled) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  cancel(id);
  EXPECT_EQ(fail(token).status, Status::cancelled);
}

TEST_P(Finish, TokenAfterTheCancelGraceIsStale) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  cancel(id);
  clock_.advance(30s);
  store().sweep(100);
  EXPECT_EQ(status_of(id), Status::cancelled);
  EXPECT_FALSE(complete(token).accepted);
}

TEST_P(Finish, ReportThatClosedWhatIsNotKeptIsRecognisedForAWhile) {
  set_retention("work", 0ms);
  submitted(Task().concurrency_key("k"));
  const LeaseToken token = token_of(claim_one());
  const FinishOutcome first = complete(token);
  EXPECT_TRUE(first.purged);
  clock_.advance(kReportMemory - 1ms);
  const FinishOutcome again = complete(token);
  EXPECT_TRUE(again.accepted);
  EXPECT_EQ(again.status, Status::completed);
  EXPECT_EQ(again.queue, "work");
  EXPECT_TRUE(again.had_concurrency_key);
  EXPECT_EQ(again.purged, std::nullopt);
  EXPECT_FALSE(complete(token, "2").accepted) << "another result is no repetition";
  EXPECT_FALSE(fail(token).accepted);
  clock_.advance(1ms);
  EXPECT_FALSE(complete(token).accepted);
}

TEST_P(Finish, FailureThatClosedWhatIsNotKeptIsRecognisedToo) {
  set_retention("work", 0ms);
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  EXPECT_EQ(fail(token, false).status, Status::failed);
  EXPECT_EQ(fail(token, false).status, Status::failed);
  EXPECT_TRUE(fail(token, false).accepted);
  EXPECT_FALSE(complete(token).accepted);
}

TEST_P(Finish, ReportIsRecognisedAfterAnEarlyCleanup) {
  set_retention("work", 10ms);
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  complete(token);
  clock_.advance(10ms);
  EXPECT_EQ(store().purge(100).executions, 1);
  EXPECT_TRUE(complete(token).accepted);
  clock_.advance(kReportMemory);
  store().purge(100);
  EXPECT_FALSE(complete(token).accepted);
}

TEST_P(Finish, LeaseOfAnotherNamespaceIsLost) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  const std::vector<Report> stranger{{token, Report::Completed{"1"}, "other"}};
  EXPECT_FALSE(store().finish(stranger).at(0).accepted);
  EXPECT_EQ(status_of(id), Status::running);
  const std::vector<Report> own{{token, Report::Completed{"1"}, "default"}};
  EXPECT_TRUE(store().finish(own).at(0).accepted);
  EXPECT_FALSE(store().finish(stranger).at(0).accepted) << "nor does a repetition tell of it";
}

class Extend : public StoreTest {};
HAPAX_FOR_ALL_STORES(Extend);

TEST_P(Extend, MovesTheEndOfTheLease) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  clock_.advance(30s);
  const ExtendOutcome outcome = extend(token, 45s);
  EXPECT_TRUE(outcome.ok);
  EXPECT_FALSE(outcome.cancel_requested);
  EXPECT_EQ(outcome.lease_expires_at, now() + 45s);
  EXPECT_EQ(find(id)->lease_expires_at, now() + 45s);
}

TEST_P(Extend, KeepsTheTaskFromTheSweep) {
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  clock_.advance(59s);
  extend(token);
  clock_.advance(59s);
  EXPECT_THAT(store().sweep(100).effects.ready, IsEmpty());
  clock_.advance(1s);
  EXPECT_EQ(store().sweep(100).effects.ready.size(), 1u);
}

TEST_P(Extend, TellsOfARequestedCancel) {
  const auto id = submitted(Task()).id;
  const LeaseToken token = token_of(claim_one());
  cancel(id);
  const ExtendOutcome outcome = extend(token);
  EXPECT_TRUE(outcome.ok);
  EXPECT_TRUE(outcome.cancel_requested);
}

TEST_P(Extend, DoesNotOutliveTheTimeout) {
  const auto id = submitted(Task().timeout(10s)).id;
  const LeaseToken token = token_of(claim_one());
  extend(token, 1h);
  clock_.advance(10s);
  store().sweep(100);
  EXPECT_EQ(status_of(id), Status::pending);
}

TEST_P(Extend, OfAFinishedTaskIsLost) {
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  complete(token);
  EXPECT_EQ(extend(token), ExtendOutcome{});
}

TEST_P(Extend, OfAnotherNamespaceIsLost) {
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  const std::vector<Extension> mixed{{token, 10s, "other"}, {token, 0ms, "other"}, {token, 20s, "default"}};
  const auto outcomes = store().extend(mixed);
  EXPECT_FALSE(outcomes.at(0).ok);
  EXPECT_FALSE(outcomes.at(1).ok);
  EXPECT_EQ(outcomes.at(2).lease_expires_at, now() + 20s);
}

TEST_P(Extend, TwiceIsFine) {
  submitted(Task());
  const LeaseToken token = token_of(claim_one());
  const std::vector<Extension> twice{{token, 10s}, {token, 20s}};
  const auto outcomes = store().extend(twice);
  EXPECT_EQ(outcomes.at(0).lease_expires_at, now() + 10s);
  EXPECT_EQ(outcomes.at(1).lease_expires_at, now() + 20s);
}

}  // namespace
}  // namespace hapax
