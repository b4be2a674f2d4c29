#include "core/invariant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/failure.h"
#include "core/ledger.h"
#include "core/rate.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "core/workflow.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Time kNoon = from_ms(1'769'515'200'000);

void expect_broken(const std::function<void()>& act, const std::string& sentence) {
  try {
    act();
    ADD_FAILURE() << "nothing noticed that " << sentence;
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::corrupt);
    EXPECT_THAT(failure.what(), HasSubstr(sentence));
  }
}

Execution pending() {
  Execution execution;
  execution.run_at = kNoon;
  return execution;
}

Execution running() {
  Execution execution = pending();
  start_attempt(execution, "worker", LeaseSecret::generate(), 60s, kNoon);
  return execution;
}

TEST(Invariant, ThatHoldsDoesNothing) { EXPECT_NO_THROW(invariant(1 + 1 == 2, "arithmetic works")); }

TEST(Invariant, ThatIsBrokenThrowsCorruptWithTheSentenceAndThePlace) {
  try {
    invariant(1 + 1 == 3, "arithmetic works");
    FAIL() << "it did not throw";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::corrupt);
    EXPECT_FALSE(failure.safe_to_retry());
    EXPECT_THAT(failure.what(), HasSubstr("arithmetic works"));
    EXPECT_THAT(failure.what(), HasSubstr("core/invariant_test.cpp:"));
  }
}

TEST(BrokenInvariant, StopsAStartOfWhatIsNotPendingNotDueOrOutOfAttempts) {
  const auto start = [](Execution execution) {
    return [execution]() mutable { start_attempt(execution, "worker", LeaseSecret::generate(), 60s, kNoon); };
  };
  expect_broken(start(running()), "only a pending execution is started");
  Execution later = pending();
  later.run_at = kNoon + 1ms;
  expect_broken(start(later), "nothing is started before its run_at");
  Execution exhausted = pending();
  exhausted.attempt = exhausted.attempt_limit;
  expect_broken(start(exhausted), "no attempt is started beyond the limit");
}

TEST(BrokenInvariant, StopsAReportOnWhatDoesNotRun) {
  Execution execution = pending();
  const std::string sentence = "only a running execution";
  expect_broken([&] { complete(execution, "1", kNoon); }, sentence);
  expect_broken([&] { fail_attempt(execution, {"Boom", "it broke"}, true, kNoon); }, sentence);
  expect_broken([&] { extend_lease(execution, 60s, kNoon); }, sentence);
  expect_broken([&] { give_back(execution, kNoon); }, sentence);
}

TEST(BrokenInvariant, StopsAReportOnARunningExecutionWithoutALease) {
  Execution execution = running();
  execution.lease_secret.reset();
  expect_broken([&] { fail_attempt(execution, {"Boom", "it broke"}, true, kNoon); }, "its lease");
}

TEST(BrokenInvariant, StopsAStateThatContradictsItself) {
  Execution ended = pending();
  ended.finished_at = kNoon;
  expect_broken([&] { start_attempt(ended, "worker", LeaseSecret::generate(), 60s, kNoon); },
                "if and only if it is closed");
  Execution graced = running();
  graced.cancel_by = kNoon;
  expect_broken([&] { recount(graced, {}, 60s, kNoon); }, "a grace is counted from a requested cancel");
  Execution failed_often = running();
  failed_often.failed_attempts.resize(2);
  expect_broken([&] { complete(failed_often, "1", kNoon); }, "no more attempts failed than were started");
}

TEST(BrokenInvariant, StopsAWorkflowThatIsClosedTwiceOrReopenedWhileOpen) {
  Execution run = running();
  run.kind = Kind::workflow;
  expect_broken([&] { close_run(run, Status::pending, kNoon); }, "with a closed status");
  expect_broken([&] { reopen(run, kNoon); }, "only a workflow that did not complete is reopened");
  close_run(run, Status::completed, kNoon);
  expect_broken([&] { close_run(run, Status::failed, kNoon); }, "only an open workflow is closed");
}

TEST(BrokenInvariant, StopsATurnThatIsRememberedWithoutALease) {
  Execution run = pending();
  expect_broken([&] { remember_turn(run); }, "a turn is committed under its lease");
}

TEST(BrokenInvariant, StopsALedgerEntryWithoutWhatItsStateNeeds) {
  LedgerEntry entry;
  expect_broken([&] { execution_of(entry); }, "read from its tombstone");
  Execution owner;
  owner.status = Status::completed;
  expect_broken([&] { dies_at(entry, &owner, 1h); }, "a closed owner has an end");
}

TEST(BrokenInvariant, StopsATokenThatIsOfNoAttempt) {
  expect_broken([] { LeaseToken().next(); }, "attempts are counted from 1");
}

TEST(BrokenInvariant, StopsARateThatWouldDivideByZeroAndPermitsThatAreReturnedBackwards) {
  RateState state;
  expect_broken([&] { take(Rate{}, state, kNoon, 1); }, "a rate has a count");
  expect_broken([&] { return_permits(Rate{1, 1s, 1}, state, kNoon, -1); }, "permits are returned");
}

TEST(BrokenInvariant, StopsAScheduleThatWouldBeStoredInAStateThatCannotBe) {
  SchedulePosition unpaused;
  unpaused.paused_to = kNoon;
  expect_broken([&] { unpaused.to_json(); }, "a pause that ended has begun");
  SchedulePosition backwards;
  backwards.missed.emplace().from = kNoon;
  expect_broken([&] { backwards.to_json(); }, "goes forward");
}

}  // namespace
}  // namespace hapax
