#include "core/transition.h"

#include <gtest/gtest.h>

#include "core/retry.h"
#include "core/workflow.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);
constexpr Duration kLease = 60s;

LeaseSecret secret_of(std::int32_t attempt) {
  LeaseSecret secret;
  secret.bytes[0] = static_cast<std::uint8_t>(attempt);
  secret.bytes[15] = 0xab;
  return secret;
}

LeaseToken token_of(const Execution& execution, std::int32_t attempt) {
  return {execution.id, attempt, secret_of(attempt)};
}

Execution pending() {
  Execution execution;
  execution.id = *ExecutionId::parse("019bff32-8800-7abc-8def-0123456789ab");
  execution.created_at = kNoon;
  execution.run_at = kNoon;
  return execution;
}

void start(Execution& execution, Time now) {
  start_attempt(execution, "worker", secret_of(execution.attempt + 1), kLease, now);
}

Execution running(Time now = kNoon) {
  Execution execution = pending();
  start(execution, now);
  return execution;
}

Execution closed_as(Status status) {
  Execution execution = running();
  switch (status) {
    case Status::completed: complete(execution, "1", kNoon + 1s); break;
    case Status::failed: fail_attempt(execution, {"Boom", "it broke"}, false, kNoon + 1s); break;
    case Status::cancelled:
      request_cancel(execution, 0ms, kNoon + 1s);
      expire(execution, kNoon + 1s);
      break;
    case Status::timed_out:
      execution.deadline_at = kNoon + 1s;
      expire(execution, kNoon + 1s);
      break;
    default: break;
  }
  EXPECT_EQ(execution.status, status);
  return execution;
}

constexpr std::initializer_list<Status> kClosed{Status::completed, Status::failed, Status::cancelled,
                                                Status::timed_out};

// What holds of every execution between two transitions.
void expect_sound(const Execution& execution) {
  EXPECT_EQ(execution.finished_at.has_value(), is_closed(execution.status));
  EXPECT_EQ(execution.lease_expires_at.has_value(), execution.status == Status::running);
  if (execution.status != Status::running) {
    EXPECT_EQ(execution.attempt_ends_by, std::nullopt);
    EXPECT_EQ(execution.cancel_by, std::nullopt);
  }
}

TEST(StartAttempt, MakesAPendingExecutionRunUnderALease) {
  Execution execution = pending();
  execution.timeout = 5s;
  start(execution, kNoon);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::running);
  EXPECT_EQ(execution.attempt, 1);
  EXPECT_EQ(execution.worker, "worker");
  EXPECT_EQ(execution.started_at, kNoon);
  EXPECT_EQ(execution.lease_expires_at, kNoon + kLease);
  EXPECT_EQ(execution.attempt_ends_by, kNoon + 5s);
  EXPECT_EQ(execution.due_at(), kNoon + 5s);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::current);
}

TEST(ExtendLease, CountsFromNow) {
  Execution execution = running();
  extend_lease(execution, 10s, kNoon + 55s);
  EXPECT_EQ(execution.lease_expires_at, kNoon + 65s);
  EXPECT_EQ(execution.status, Status::running);
  EXPECT_FALSE(expire(execution, kNoon + 64s));
}

TEST(Complete, ClosesWithTheResult) {
  Execution execution = running();
  complete(execution, R"({"ok":true})", kNoon + 1s);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::completed);
  EXPECT_EQ(execution.result, R"({"ok":true})");
  EXPECT_EQ(execution.finished_at, kNoon + 1s);
  EXPECT_EQ(execution.due_at(), std::nullopt);
}

TEST(Complete, NothingReturnedIsNotTheJsonNull) {
  Execution nothing = running(), null = running();
  complete(nothing, std::nullopt, kNoon);
  complete(null, "null", kNoon);
  EXPECT_EQ(nothing.result, std::nullopt);
  EXPECT_EQ(null.result, "null");
}

TEST(Complete, CountsEvenAfterACancelWasRequested) {
  Execution execution = running();
  request_cancel(execution, 30s, kNoon + 1s);
  complete(execution, "1", kNoon + 2s);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::completed);
}

TEST(Complete, AfterFailedAttemptsLeavesNoErrorButTheirRecords) {
  Execution execution = running();
  fail_attempt(execution, {"Boom", "it broke"}, true, kNoon + 1s);
  start(execution, execution.run_at);
  complete(execution, "1", kNoon + 70s);
  EXPECT_EQ(execution.error, std::nullopt);
  EXPECT_EQ(execution.failed_attempts.size(), 1u);
}

TEST(FailAttempt, GoesBackToPendingAfterThePause) {
  Execution execution = running();
  fail_attempt(execution, {"Boom", "it broke"}, true, kNoon + 5s);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::pending);
  EXPECT_EQ(execution.run_at, kNoon + 5s + backoff(execution.retry, execution.id, 1));
  EXPECT_EQ(execution.error, (AttemptError{"Boom", "it broke"}));
  ASSERT_EQ(execution.failed_attempts.size(), 1u);
  const AttemptRecord& record = execution.failed_attempts[0];
  EXPECT_EQ(record.attempt, 1);
  EXPECT_EQ(record.worker, "worker");
  EXPECT_EQ(record.started_at, kNoon);
  EXPECT_EQ(record.ended_at, kNoon + 5s);
  EXPECT_TRUE(record.reported);
}

TEST(FailAttempt, TheLastAttemptFailsTheExecution) {
  Execution execution = running();
  for (std::int32_t attempt = 1; attempt < 3; ++attempt) {
    fail_attempt(execution, {"Boom", "again"}, true, kNoon);
    ASSERT_EQ(execution.status, Status::pending);
    start(execution, execution.run_at);
  }
  fail_attempt(execution, {"Boom", "at last"}, true, kNoon + 200s);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::failed);
  EXPECT_EQ(execution.error->message, "at last");
  EXPECT_EQ(execution.failed_attempts.size(), 3u);
}

TEST(FailAttempt, AnErrorThatCannotBeRetriedFailsAtOnce) {
  Execution execution = running();
  fail_attempt(execution, {"Invalid", "no such card"}, false, kNoon);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::failed);
}

TEST(FailAttempt, AfterACancelWasRequestedClosesAsCancelled) {
  Execution execution = running();
  request_cancel(execution, 30s, kNoon);
  fail_attempt(execution, {"Stopped", "as asked"}, true, kNoon + 1s);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::cancelled);
  EXPECT_EQ(execution.failed_attempts.size(), 1u);
}

TEST(Expire, NothingHappensBeforeItsTime) {
  Execution execution = running();
  execution.deadline_at = kNoon + 1h;
  const Execution before = execution;
  EXPECT_FALSE(expire(execution, kNoon + kLease - 1ms));
  EXPECT_EQ(execution, before);
  Execution waiting = pending();
  EXPECT_FALSE(expire(waiting, kNoon + 24h));
}

TEST(Expire, ALostLeaseMakesItClaimableAtOnce) {
  Execution execution = running();
  EXPECT_TRUE(expire(execution, kNoon + kLease));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::pending);
  EXPECT_EQ(execution.run_at, kNoon + kLease);
  EXPECT_EQ(execution.error->type, "LeaseExpired");
  EXPECT_FALSE(execution.failed_attempts.at(0).reported);
  start(execution, kNoon + kLease);
  EXPECT_EQ(execution.attempt, 2);
}

TEST(Expire, ALostLeaseOfTheLastAttemptFails) {
  Execution execution = pending();
  execution.attempt_limit = 1;
  start(execution, kNoon);
  EXPECT_TRUE(expire(execution, kNoon + kLease));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::failed);
}

TEST(Expire, AnAttemptThatTakesTooLongIsTriedAgainAfterThePause) {
  Execution execution = pending();
  execution.timeout = 5s;
  start(execution, kNoon);
  EXPECT_TRUE(expire(execution, kNoon + 5s));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::pending);
  EXPECT_EQ(execution.run_at, kNoon + 5s + backoff(execution.retry, execution.id, 1));
  EXPECT_EQ(execution.error->type, "AttemptTimeout");
}

TEST(Expire, TheLastAttemptThatTakesTooLongTimesOut) {
  Execution execution = pending();
  execution.timeout = 5s;
  execution.attempt_limit = 1;
  start(execution, kNoon);
  EXPECT_TRUE(expire(execution, kNoon + 5s));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::timed_out);
}

TEST(Expire, TheDeadlineEndsAPendingExecution) {
  Execution execution = pending();
  execution.deadline_at = kNoon + 1min;
  EXPECT_EQ(execution.due_at(), kNoon + 1min);
  EXPECT_FALSE(expire(execution, kNoon + 1min - 1ms));
  EXPECT_TRUE(expire(execution, kNoon + 1min));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::timed_out);
  EXPECT_EQ(execution.error->type, "DeadlineExceeded");
}

TEST(Expire, TheDeadlineEndsARunningExecutionWithAttemptsLeft) {
  Execution execution = running();
  execution.deadline_at = kNoon + 30s;
  EXPECT_TRUE(expire(execution, kNoon + 30s));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::timed_out);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::stale);
}

TEST(Expire, TheGraceOfACancelEndsInCancelled) {
  Execution execution = running();
  request_cancel(execution, 30s, kNoon);
  EXPECT_FALSE(expire(execution, kNoon + 30s - 1ms));
  EXPECT_TRUE(expire(execution, kNoon + 30s));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::cancelled);
  EXPECT_EQ(execution.error->type, "CancelGraceExceeded");
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::stale);
}

TEST(Expire, WhateverEndsARunningExecutionAfterACancelCancelsIt) {
  Execution lease = running();
  request_cancel(lease, 10min, kNoon);
  EXPECT_TRUE(expire(lease, kNoon + kLease));
  EXPECT_EQ(lease.status, Status::cancelled);

  Execution timeout = pending();
  timeout.timeout = 5s;
  start(timeout, kNoon);
  request_cancel(timeout, 10min, kNoon);
  EXPECT_TRUE(expire(timeout, kNoon + 5s));
  EXPECT_EQ(timeout.status, Status::cancelled);

  Execution deadline = running();
  deadline.deadline_at = kNoon + 5s;
  request_cancel(deadline, 10min, kNoon);
  EXPECT_TRUE(expire(deadline, kNoon + 5s));
  EXPECT_EQ(deadline.status, Status::cancelled);
  for (const Execution* execution : {&lease, &timeout, &deadline}) expect_sound(*execution);
}

TEST(Expire, LeavesClosedExecutionsAlone) {
  for (Status status : kClosed) {
    Execution execution = closed_as(status);
    const Execution before = execution;
    EXPECT_FALSE(expire(execution, kNoon + 24h * 365));
    EXPECT_EQ(execution, before);
  }
}

TEST(Expire, HasNothingMoreToDoOnceItIsNotDue) {
  Execution execution = pending();
  execution.timeout = 5s;
  execution.deadline_at = kNoon + 1h;
  start(execution, kNoon);
  const Time due = *execution.due_at();
  EXPECT_FALSE(expire(execution, due - 1ms));
  EXPECT_TRUE(expire(execution, due));
  EXPECT_FALSE(expire(execution, due));
  EXPECT_EQ(execution.due_at(), kNoon + 1h);
}

TEST(Token, OfAnotherSecretOrAttemptIsStale) {
  const Execution execution = running();
  EXPECT_EQ(check_token(execution, {execution.id, 1, secret_of(2)}), TokenCheck::stale);
  EXPECT_EQ(check_token(execution, {execution.id, 2, secret_of(1)}), TokenCheck::stale);
  EXPECT_EQ(check_token(execution, {execution.id, 0, secret_of(1)}), TokenCheck::stale);
  EXPECT_EQ(check_token(pending(), token_of(execution, 1)), TokenCheck::stale);
}

TEST(Token, OfAnAcceptedReportIsRepeated) {
  const Execution completed = closed_as(Status::completed), failed = closed_as(Status::failed);
  EXPECT_EQ(check_token(completed, token_of(completed, 1)), TokenCheck::repeated);
  EXPECT_EQ(check_token(failed, token_of(failed, 1)), TokenCheck::repeated);
}

TEST(Token, OfAFailureThatIsRetriedStaysRepeatedThroughLaterAttempts) {
  Execution execution = running();
  fail_attempt(execution, {"Boom", "it broke"}, true, kNoon);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::repeated);
  start(execution, execution.run_at);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::repeated);
  EXPECT_EQ(check_token(execution, token_of(execution, 2)), TokenCheck::current);
  complete(execution, "1", kNoon + 70s);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::repeated);
  EXPECT_EQ(check_token(execution, token_of(execution, 2)), TokenCheck::repeated);
}

TEST(Token, OfAnAttemptThatWasTakenAwayIsStale) {
  Execution execution = running();
  expire(execution, kNoon + kLease);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::stale);
  start(execution, kNoon + kLease);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::stale);
  EXPECT_EQ(check_token(execution, token_of(execution, 2)), TokenCheck::current);
}

TEST(RequestCancel, ClosesAPendingExecutionAtOnce) {
  Execution execution = pending();
  EXPECT_TRUE(request_cancel(execution, 30s, kNoon + 1s));
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::cancelled);
  EXPECT_EQ(execution.finished_at, kNoon + 1s);
  EXPECT_FALSE(request_cancel(execution, 30s, kNoon + 2s));
}

TEST(RequestCancel, TellsARunningExecutionOnceAndGivesItTheGrace) {
  Execution execution = running();
  EXPECT_TRUE(request_cancel(execution, 30s, kNoon + 1s));
  EXPECT_EQ(execution.status, Status::running);
  EXPECT_EQ(execution.cancel_requested_at, kNoon + 1s);
  EXPECT_EQ(execution.cancel_by, kNoon + 31s);
  EXPECT_EQ(execution.due_at(), kNoon + 31s);
  EXPECT_EQ(check_token(execution, token_of(execution, 1)), TokenCheck::current);
  EXPECT_FALSE(request_cancel(execution, 10min, kNoon + 2s));
  EXPECT_EQ(execution.cancel_by, kNoon + 31s);
}

TEST(RequestCancel, ExtendingTheLeaseDoesNotExtendTheGrace) {
  Execution execution = running();
  request_cancel(execution, 30s, kNoon);
  extend_lease(execution, 10min, kNoon + 29s);
  EXPECT_EQ(execution.due_at(), kNoon + 30s);
}

TEST(RequestCancel, LeavesClosedExecutionsAlone) {
  for (Status status : kClosed) {
    Execution execution = closed_as(status);
    const Execution before = execution;
    EXPECT_FALSE(request_cancel(execution, 30s, kNoon + 1h));
    EXPECT_EQ(execution, before);
  }
}

TEST(RetryClosed, GivesNewAttempts) {
  for (Status status : {Status::failed, Status::cancelled, Status::timed_out}) {
    Execution execution = closed_as(status);
    EXPECT_TRUE(retry_closed(execution, kNoon + 1h));
    expect_sound(execution);
    EXPECT_EQ(execution.status, Status::pending);
    EXPECT_EQ(execution.run_at, kNoon + 1h);
    EXPECT_EQ(execution.attempt, 1);
    EXPECT_EQ(execution.attempt_limit, 4);
    EXPECT_EQ(execution.cancel_requested_at, std::nullopt);
    EXPECT_EQ(execution.deadline_at, std::nullopt);
    EXPECT_EQ(execution.due_at(), std::nullopt);

    start(execution, kNoon + 1h);
    EXPECT_EQ(execution.attempt, 2);
    complete(execution, "1", kNoon + 1h);
    EXPECT_EQ(execution.status, Status::completed);
  }
}

TEST(RetryClosed, KeepsADeadlineThatIsStillToCome) {
  Execution execution = closed_as(Status::failed);
  execution.deadline_at = kNoon + 2h;
  EXPECT_TRUE(retry_closed(execution, kNoon + 1h));
  EXPECT_EQ(execution.deadline_at, kNoon + 2h);
}

TEST(RetryClosed, IsRefusedInAnyOtherStatus) {
  for (Execution execution : {pending(), running(), closed_as(Status::completed)}) {
    const Execution before = execution;
    EXPECT_FALSE(retry_closed(execution, kNoon + 1h));
    EXPECT_EQ(execution, before);
  }
}

// ---- workflows

Execution running_workflow() {
  Execution run = pending();
  run.kind = Kind::workflow;
  start(run, kNoon);
  return run;
}

TEST(Turns, ALostOneIsTakenAgainUntilItHasLostThreeWorkers) {
  Execution run = running_workflow();
  for (int i = 0; i < kMaxLostTurns - 1; ++i) {
    ASSERT_TRUE(expire(run, *run.lease_expires_at));
    expect_sound(run);
    EXPECT_EQ(run.status, Status::pending);
    start(run, run.run_at);
  }
  ASSERT_TRUE(expire(run, *run.lease_expires_at));
  expect_sound(run);
  EXPECT_TRUE(waits_for_resume(run));
  EXPECT_EQ(run.error->type, kWorkerLost);
  EXPECT_TRUE(run.failed_attempts.empty());
}

TEST(Turns, ACommittedOneForgetsTheLostOnes) {
  Execution run = running_workflow();
  expire(run, *run.lease_expires_at);
  start(run, run.run_at);
  remember_turn(run);
  run.status = Status::pending;
  end_turn(run);
  for (int i = 0; i < kMaxLostTurns - 1; ++i) {
    start(run, run.run_at);
    ASSERT_TRUE(expire(run, *run.lease_expires_at));
    EXPECT_EQ(run.status, Status::pending);
  }
}

TEST(Snooze, RunsAgainLaterUnderTheSameAttemptNumber) {
  Execution execution = running();
  const LeaseToken token = token_of(execution, 1);
  snooze(execution, std::chrono::minutes(5), kNoon);
  expect_sound(execution);
  EXPECT_EQ(execution.status, Status::pending);
  EXPECT_EQ(execution.run_at, kNoon + std::chrono::minutes(5));
  EXPECT_EQ(execution.attempt, 0);
  EXPECT_EQ(check_token(execution, token), TokenCheck::repeated);
  start(execution, kNoon + std::chrono::minutes(5));
  EXPECT_EQ(execution.attempt, 1);
}

TEST(Cancel, AWorkflowThatWasAskedToEndIsClosedAfterItsGrace) {
  Execution run = running_workflow();
  run.cancel_requested_at = kNoon;
  run.cancel_by = kNoon + 1s;
  EXPECT_EQ(run.due_at(), kNoon + 1s);
  EXPECT_TRUE(expire(run, kNoon + 1s));
  expect_sound(run);
  EXPECT_EQ(run.status, Status::cancelled);
}

TEST(Turns, ALostOneIsStale) {
  Execution run = running_workflow();
  const LeaseToken token = token_of(run, 1);
  expire(run, *run.lease_expires_at);
  EXPECT_EQ(check_token(run, token), TokenCheck::stale);
}

TEST(Turns, CancelClosesARunningWorkflowAtOnceAndFencesItsTurn) {
  Execution run = running_workflow();
  const LeaseToken token = token_of(run, 1);
  EXPECT_TRUE(request_cancel(run, 30s, kNoon + 1s));
  expect_sound(run);
  EXPECT_EQ(run.status, Status::cancelled);
  EXPECT_EQ(check_token(run, token), TokenCheck::stale);
}

TEST(Turns, ASuspendedWorkflowIsDueWhenItWakes) {
  Execution run = running_workflow();
  end_turn(run);
  run.status = Status::suspended;
  EXPECT_EQ(run.due_at(), std::nullopt);
  run.run.wake_at = kNoon + 1h;
  EXPECT_EQ(run.due_at(), kNoon + 1h);
  run.deadline_at = kNoon + 30min;
  EXPECT_EQ(run.due_at(), kNoon + 30min);
}

TEST(Turns, AReopenedWorkflowIsPendingWithoutTheDeadlineThatEndedIt) {
  Execution run = running_workflow();
  run.deadline_at = kNoon + 1s;
  expire(run, kNoon + 1s);
  EXPECT_EQ(run.status, Status::timed_out);
  reopen(run, kNoon + 2s);
  expect_sound(run);
  EXPECT_EQ(run.status, Status::pending);
  EXPECT_EQ(run.run_at, kNoon + 2s);
  EXPECT_EQ(run.deadline_at, std::nullopt);
  EXPECT_EQ(run.error, std::nullopt);
}

// ---- a clock that is set back

TEST(ClockSetBack, NothingThatWasCountedRightIsChanged) {
  Execution execution = running();
  const Execution before = execution;
  EXPECT_FALSE(recount(execution, 0ms, kLease, kNoon));
  EXPECT_FALSE(recount(execution, 0ms, kLease, kNoon + 30s));
  EXPECT_EQ(execution, before);
  Execution waits = pending();
  EXPECT_FALSE(recount(waits, 0ms, std::nullopt, kNoon));
  Execution closed = closed_as(Status::completed);
  EXPECT_FALSE(recount(closed, 0ms, kLease, kNoon - 24h));
}

TEST(ClockSetBack, ARunningAttemptHasItsLeaseItsTimeoutAndItsGraceFromNow) {
  Execution execution = pending();
  execution.timeout = 5min;
  start(execution, kNoon);
  request_cancel(execution, 10s, kNoon);
  const Time right = kNoon - 24h;
  EXPECT_TRUE(recount(execution, 0ms, kLease, right));
  expect_sound(execution);
  EXPECT_EQ(execution.lease_expires_at, right + kLease);
  EXPECT_EQ(execution.attempt_ends_by, right + 5min);
  EXPECT_EQ(execution.cancel_by, right + 10s);
}

TEST(ClockSetBack, APendingOneWaitsForItsDelayFromNowUnlessItsCallerNamedTheTime) {
  const Time right = kNoon - 24h;
  Execution delayed = pending();
  delayed.run_at = kNoon + 10s;
  Execution named = delayed;
  EXPECT_TRUE(recount(delayed, 10s, std::nullopt, right));
  EXPECT_EQ(delayed.run_at, right + 10s);
  EXPECT_FALSE(recount(named, std::nullopt, std::nullopt, right));
  EXPECT_EQ(named.run_at, kNoon + 10s);
}

}  // namespace
}  // namespace hapax
