// Submit and run here: the submission is answered with a claim on its task, in the same commit.
#include "conformance/store_test.h"

namespace hapax {
namespace {

using testing::IsEmpty;

using Answer = SubmitOutcome::Kind;

class RunHere : public StoreTest {
 protected:
  // The n-th submission that wants to run the task of this key.
  static Task caller(std::uint64_t n, const std::string& key = "k") {
    return Task().id(test_id(n)).key(key).input("7").run_here("here-" + std::to_string(n), test_secret(n), 30s);
  }

  void expect_not_claimed(const Submission& submission) {
    const SubmitOutcome outcome = submit(submission);
    EXPECT_EQ(outcome.kind, Answer::created);
    EXPECT_FALSE(outcome.claimed);
    EXPECT_EQ(status_of(outcome.execution.id), Status::pending);
  }
};
HAPAX_FOR_ALL_STORES(RunHere);

TEST_P(RunHere, StartsTheAttemptAsAClaimWould) {
  const SubmitOutcome outcome = submit(caller(1).timeout(10s));
  EXPECT_EQ(outcome.kind, Answer::created);
  EXPECT_TRUE(outcome.claimed);
  const Execution& running = outcome.execution;
  EXPECT_EQ(running.status, Status::running);
  EXPECT_EQ(running.attempt, 1);
  EXPECT_EQ(running.started_at, now());
  EXPECT_EQ(running.worker, "here-1");
  EXPECT_EQ(running.lease_secret, test_secret(1));
  EXPECT_EQ(running.lease_expires_at, now() + 30s);
  EXPECT_EQ(running.attempt_ends_by, now() + 10s);
  EXPECT_EQ(find(running.id), running);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  EXPECT_EQ(store().count().at(0).running, 1);

  EXPECT_TRUE(complete(token_of(running), "42").accepted);
  const SubmitOutcome later = submit(caller(2));
  EXPECT_EQ(later.kind, Answer::duplicate);
  EXPECT_FALSE(later.claimed);
  EXPECT_EQ(later.execution.result, "42");
}

TEST_P(RunHere, TheSameSubmissionAgainGetsTheSameClaim) {
  const Execution first = submit(caller(1)).execution;
  clock_.advance(29s);
  const SubmitOutcome again = second_handle()->submit(std::vector<Submission>{caller(1)}).at(0);
  EXPECT_EQ(again.kind, Answer::created);
  EXPECT_TRUE(again.claimed);
  EXPECT_EQ(again.execution, first);
  EXPECT_TRUE(complete(token_of(again.execution)).accepted);
}

TEST_P(RunHere, TwiceInOneBatchIsOneClaim) {
  const std::vector<Submission> twice{caller(1), caller(1), caller(2)};
  const std::vector<SubmitOutcome> outcomes = store().submit(twice);
  EXPECT_TRUE(outcomes.at(0).claimed && outcomes.at(1).claimed);
  EXPECT_EQ(outcomes[0].execution, outcomes[1].execution);
  EXPECT_EQ(outcomes[2].kind, Answer::duplicate);
  EXPECT_FALSE(outcomes[2].claimed);
}

TEST_P(RunHere, WithoutAKeyToo) {
  const Submission submission = Task().id(test_id(5)).run_here("here", test_secret(5));
  EXPECT_TRUE(submit(submission).claimed);
  EXPECT_TRUE(submit(submission).claimed);
  EXPECT_EQ(find(test_id(5))->attempt, 1);
}

TEST_P(RunHere, AnotherCallerMeetsARunningOwner) {
  submit(caller(1));
  const SubmitOutcome other = submit(caller(2));
  EXPECT_EQ(other.kind, Answer::duplicate);
  EXPECT_FALSE(other.claimed);
  EXPECT_EQ(other.execution.status, Status::running);
}

TEST_P(RunHere, AnOwnerThatLostItsLeaseIsTakenOver) {
  const Execution dead = submit(caller(1)).execution;
  clock_.advance(31s);
  EXPECT_FALSE(submit(caller(1)).claimed) << "its lease is over";
  store().sweep(100);
  clock_.advance(61s);

  const SubmitOutcome taken = submit(caller(2));
  EXPECT_EQ(taken.kind, Answer::duplicate);
  EXPECT_TRUE(taken.claimed);
  EXPECT_EQ(taken.execution.id, dead.id);
  EXPECT_EQ(taken.execution.attempt, 2);
  EXPECT_EQ(taken.execution.lease_secret, test_secret(2));

  const SubmitOutcome again = submit(caller(2));
  EXPECT_TRUE(again.claimed);
  EXPECT_EQ(again.execution, taken.execution);
  EXPECT_FALSE(submit(caller(1)).claimed) << "the first caller has lost it to the second";
  EXPECT_FALSE(complete(token_of(dead)).accepted);
  EXPECT_TRUE(complete(token_of(taken.execution)).accepted);
}

TEST_P(RunHere, APendingOwnerOfAnyKindIsClaimed) {
  const Execution waiting = submitted(Task().key("k").input("7"));
  const SubmitOutcome taken = submit(caller(2));
  EXPECT_TRUE(taken.claimed);
  EXPECT_EQ(taken.execution.id, waiting.id);
}

TEST_P(RunHere, ABackOffIsWaitedFor) {
  const Execution first = submit(caller(1).retry({10s, 1, 10s})).execution;
  fail(token_of(first));
  const SubmitOutcome early = submit(caller(2));
  EXPECT_FALSE(early.claimed);
  EXPECT_EQ(early.execution.status, Status::pending);
  clock_.advance(11s);
  EXPECT_TRUE(submit(caller(2)).claimed);
}

TEST_P(RunHere, NoLimitIsPassedBy) {
  expect_not_claimed(caller(1, "delayed").delay(1s));
  expect_not_claimed(caller(2, "keyed").concurrency_key("c"));
  for (const auto& [queue, policy] : std::vector<std::pair<std::string, QueuePolicy>>{
           {"paused", {.paused = true}}, {"few", {.max_running = 9}}, {"slow", {.rate_limit = Rate{9, 1s, 9}}}}) {
    set_policy(queue, policy);
    expect_not_claimed(caller(std::hash<std::string>{}(queue) % 1000 + 10, queue).queue(queue));
  }
}

TEST_P(RunHere, AConflictClaimsNothing) {
  submitted(Task().key("k").input("8"));
  const SubmitOutcome outcome = submit(caller(2));
  EXPECT_EQ(outcome.kind, Answer::conflict);
  EXPECT_FALSE(outcome.claimed);
  EXPECT_EQ(outcome.execution.status, Status::pending);
}

TEST_P(RunHere, ADryRunClaimsNothing) {
  EXPECT_FALSE(submit(caller(1).dry_run()).claimed);
  const Execution waiting = submitted(Task().key("k").input("7"));
  EXPECT_FALSE(submit(caller(2).dry_run()).claimed);
  EXPECT_EQ(status_of(waiting.id), Status::pending);
}

TEST_P(RunHere, ReplaceRunsTheNewOne) {
  const Execution old = submitted(Task().key("k").input("7"));
  const SubmitOutcome outcome = submit(caller(2).reuse(Reuse::replace));
  EXPECT_TRUE(outcome.claimed);
  EXPECT_EQ(outcome.superseded, old.id);
  EXPECT_EQ(status_of(old.id), Status::cancelled);
  EXPECT_TRUE(submit(caller(2).reuse(Reuse::replace)).claimed) << "and again, the same one";
}

TEST_P(RunHere, AWaitingClaimDoesNotGetIt) {
  WaitingClaims waiting;
  waiting.requests.push_back(claim_request({"work"}, 10));
  const std::vector<Submission> one{caller(1)};
  EXPECT_TRUE(store().submit(one, waiting).at(0).claimed);
  waiting.outcomes.resize(1);
  EXPECT_THAT(waiting.outcomes[0].executions, IsEmpty());
}

}  // namespace
}  // namespace hapax
