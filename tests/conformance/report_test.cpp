// What a report says beyond success and failure, and what a heartbeat says beside the lease.
#include "conformance/store_test.h"
#include "core/notes.h"
#include "core/retry.h"

namespace hapax {
namespace {

const AttemptError kError{"E", "m"};

class Reporting : public StoreTest {
 protected:
  FinishOutcome finish(const Report& report) { return store().finish({&report, 1}).at(0); }
  FinishOutcome fail(const Execution& claimed, const AttemptError& error,
                     std::optional<std::variant<Duration, Time>> retry_after = {}) {
    Report report;
    report.token = token_of(claimed);
    auto& failed = report.outcome.emplace<Report::Failed>();
    failed.error = error;
    failed.retry_after = retry_after;
    return finish(report);
  }
  FinishOutcome snooze(const Execution& claimed) {
    Report report;
    report.token = token_of(claimed);
    report.outcome = Report::Snoozed{5min};
    return finish(report);
  }
  ExtendOutcome say(const Execution& claimed, std::optional<std::string> progress, std::vector<std::string> log) {
    const Extension extension{token_of(claimed), 60s, "", std::move(progress), std::move(log)};
    return store().extend({&extension, 1}).at(0);
  }
};
HAPAX_FOR_ALL_STORES(Reporting);

TEST_P(Reporting, AnErrorKeepsItsStackAndDetails) {
  const auto id = submitted(Task().max_attempts(2)).id;
  const AttemptError error{"Timeout", "no answer", "at charge()\nat main()", R"({"status":504})"};
  fail(claim_one(), error);
  EXPECT_EQ(find(id)->error, error);
  EXPECT_EQ(find(id)->failed_attempts.at(0).error, error);
  clock_.advance(1min);
  const AttemptError other{"Timeout", "no answer"};
  fail(claim_one(), other);
  EXPECT_EQ(find(id)->error, other);
  EXPECT_EQ(find(id)->failed_attempts.at(0).error, error);
}

TEST_P(Reporting, TheNextAttemptDoesNotBeginBeforeRetryAfter) {
  const auto id = submitted(Task()).id;
  const FinishOutcome later = fail(claim_one(), kError, Duration(1h));
  EXPECT_EQ(later.run_at, now() + 1h);
  clock_.advance(1h);
  const FinishOutcome at = fail(claim_one(), kError, now() + 2h);
  EXPECT_EQ(at.run_at, now() + 2h);
  EXPECT_EQ(find(id)->run_at, now() + 2h);
}

TEST_P(Reporting, RetryAfterDoesNotShortenTheBackoff) {
  const auto id = submitted(Task().retry({10s, 1, 10s})).id;
  const Execution claimed = claim_one();
  const FinishOutcome outcome = fail(claimed, kError, Duration(0));
  EXPECT_EQ(outcome.run_at, now() + backoff(claimed.retry, id, 1));
}

TEST_P(Reporting, ASnoozeRunsAgainLaterAndCostsNoAttempt) {
  const auto id = submitted(Task().max_attempts(1)).id;
  const FinishOutcome outcome = snooze(claim_one());
  EXPECT_TRUE(outcome.accepted);
  EXPECT_TRUE(outcome.snoozed);
  EXPECT_EQ(outcome.status, Status::pending);
  EXPECT_EQ(outcome.run_at, now() + 5min);
  EXPECT_EQ(find(id)->attempt, 0);
  EXPECT_TRUE(find(id)->failed_attempts.empty());
  EXPECT_TRUE(claim().executions.empty());
  clock_.advance(5min);
  const Execution again = claim_one();
  EXPECT_EQ(again.attempt, 1);
  EXPECT_EQ(complete(token_of(again), "1").status, Status::completed);
}

TEST_P(Reporting, ASnoozeSentAgainGetsTheSameAnswer) {
  submitted(Task());
  const Execution claimed = claim_one();
  snooze(claimed);
  const FinishOutcome again = snooze(claimed);
  EXPECT_TRUE(again.accepted);
  EXPECT_EQ(again.run_at, now() + 5min);
  EXPECT_FALSE(complete(token_of(claimed), "1").accepted);
  clock_.advance(5min);
  claim_one();
  EXPECT_FALSE(snooze(claimed).accepted);
}

TEST_P(Reporting, ASnoozedTaskThatIsToBeCancelledIsCancelled) {
  const auto id = submitted(Task()).id;
  const Execution claimed = claim_one();
  cancel(id);
  EXPECT_EQ(snooze(claimed).status, Status::cancelled);
  EXPECT_TRUE(snooze(claimed).accepted);
}

TEST_P(Reporting, HeartbeatsCarryProgressAndLogLines) {
  const auto id = submitted(Task()).id;
  const Execution claimed = claim_one();
  EXPECT_TRUE(say(claimed, "1", {"begun"}).ok);
  EXPECT_TRUE(say(claimed, R"({"done":2})", {}).ok);
  EXPECT_TRUE(say(claimed, std::nullopt, {"half"}).ok);
  EXPECT_EQ(*read_notes(*find(id)), (Notes{1, R"({"done":2})", {"begun", "half"}, 0}));
  complete(token_of(claimed), "1");
  EXPECT_EQ(read_notes(*find(id))->log.size(), 2U);
  EXPECT_FALSE(say(claimed, "3", {"late"}).ok);
  EXPECT_EQ(read_notes(*find(id))->progress, R"({"done":2})");
}

TEST_P(Reporting, WhatAnAttemptSaidStaysUntilTheNextOneSpeaks) {
  const auto id = submitted(Task()).id;
  const Execution first = claim_one();
  say(first, "1", {"first"});
  fail(first, kError);
  clock_.advance(1min);
  const Execution second = claim_one();
  EXPECT_EQ(read_notes(*find(id))->attempt, 1);
  say(second, std::nullopt, {"second"});
  EXPECT_EQ(*read_notes(*find(id)), (Notes{2, std::nullopt, {"second"}, 0}));
}

}  // namespace
}  // namespace hapax
