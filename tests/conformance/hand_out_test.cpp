// What a verb makes claimable is handed to those who wait, in the same commit: as a claim right after it would have.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class HandOut : public WorkflowTest {
 protected:
  void SetUp() override { ASSERT_TRUE(store().hands_out()); }

  void wait_for(std::vector<std::string> queues, std::int32_t limit = 100) {
    waiters_.requests.push_back(claim_request(std::move(queues), limit));
  }
  void wait_for_turns(std::int32_t limit = 100) {
    wait_for({"flows"}, limit);
    waiters_.requests.back().tasks = false;
    waiters_.requests.back().workflows = true;
  }
  std::vector<SubmitOutcome> submit_all(const std::vector<Submission>& submissions) {
    waiters_.outcomes.clear();
    return store().submit(submissions, waiters_);
  }
  std::vector<Execution> handed(std::size_t waiter = 0) {
    return waiters_.outcomes.size() > waiter ? waiters_.outcomes[waiter].executions : std::vector<Execution>();
  }
  std::vector<ExecutionId> handed_ids(std::size_t waiter = 0) { return ids_of(handed(waiter)); }

  WaitingClaims waiters_;
};
INSTANTIATE_TEST_SUITE_P(Stores, HandOut, testing::ValuesIn(stores_that_hand_out()), store_name);

TEST_P(HandOut, StartsTheAttemptAsAClaimWould) {
  wait_for({"work"});
  waiters_.requests[0].lease = 30s;
  const auto outcome = submit_all({Task().key("k").timeout(10s).deadline(90s).input("7")}).at(0);

  ASSERT_EQ(handed().size(), 1U);
  Execution expected = outcome.execution;
  EXPECT_EQ(expected.status, Status::pending) << "the submitter hears what was created";
  expected.status = Status::running;
  expected.attempt = 1;
  expected.started_at = now();
  expected.worker = "worker-1";
  expected.lease_secret = waiters_.requests[0].secret;
  expected.lease_expires_at = now() + 30s;
  expected.attempt_ends_by = now() + 10s;
  EXPECT_EQ(handed()[0], expected);
  EXPECT_EQ(find(expected.id), expected);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  EXPECT_EQ(store().count().at(0).running, 1);
  EXPECT_TRUE(complete(token_of(expected)).accepted);
  EXPECT_EQ(status_of(expected.id), Status::completed);
}

TEST_P(HandOut, TheLeaseEndsAsAnyDoes) {
  wait_for({"work"});
  submit_all({Task().max_attempts(2)});
  const ExecutionId id = handed_ids().at(0);
  clock_.advance(61s);
  store().sweep(100);
  EXPECT_FALSE(complete(token_of(handed()[0])).accepted);
  clock_.advance(61s);
  EXPECT_EQ(claim_one().id, id);
}

TEST_P(HandOut, GoesByPriorityWithinTheLimit) {
  wait_for({"work"}, 2);
  const auto outcomes = submit_all({Task().priority(1), Task().priority(3), Task().priority(2)});
  EXPECT_THAT(handed_ids(), ElementsAre(outcomes[1].execution.id, outcomes[2].execution.id));
  EXPECT_THAT(claimed_ids(), ElementsAre(outcomes[0].execution.id));
}

TEST_P(HandOut, TheFirstWhoWaitsIsServedFirst) {
  wait_for({"other", "work"}, 1);
  wait_for({"work"}, 1);
  const auto outcomes = submit_all({Task(), Task(), Task()});
  EXPECT_THAT(handed_ids(0), ElementsAre(outcomes[0].execution.id));
  EXPECT_THAT(handed_ids(1), ElementsAre(outcomes[1].execution.id));
  EXPECT_THAT(claimed_ids(), ElementsAre(outcomes[2].execution.id));
}

TEST_P(HandOut, OnlyToThoseWhoAskForIt) {
  wait_for({"other"});
  wait_for({"work"});
  waiters_.requests[1].name_space = "tenant";
  wait_for({"work"});
  waiters_.requests[2].tasks = false;
  waiters_.requests[2].workflows = true;
  const auto outcomes = submit_all({Task()});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(handed_ids(i), IsEmpty());
  EXPECT_THAT(claimed_ids(), ElementsAre(outcomes[0].execution.id));
}

TEST_P(HandOut, NotBeforeItsTimeNorPastItsDeadline) {
  wait_for({"work"});
  submit_all({Task().delay(1s), Task().run_at(now() + 1s), Task().deadline_at(now())});
  EXPECT_THAT(handed_ids(), IsEmpty());
}

TEST_P(HandOut, LeavesToClaimsWhatIsLimited) {
  set_policy("few", {.max_running = 1});
  set_policy("slow", {.rate_limit = Rate{1, 1s, 1}});
  set_policy("paused", {.paused = true});
  wait_for({"few", "slow", "paused", "work"});
  submit_all({Task().queue("few"), Task().queue("slow"), Task().queue("paused"), Task().concurrency_key("k")});
  EXPECT_THAT(handed_ids(), IsEmpty());
  EXPECT_EQ(claimed_ids({"few", "slow", "paused", "work"}).size(), 3U);
}

TEST_P(HandOut, NothingForADuplicateAConflictOrADryRun) {
  submitted(Task().key("k"));
  claim_one();
  wait_for({"work"});
  const auto outcomes = submit_all({Task().key("k"), Task().key("k").input("2"), Task().key("new").dry_run()});
  EXPECT_EQ(outcomes[0].kind, SubmitOutcome::Kind::duplicate);
  EXPECT_EQ(outcomes[1].kind, SubmitOutcome::Kind::conflict);
  EXPECT_THAT(handed_ids(), IsEmpty());
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(HandOut, OneThatTakesAnIdentityOver) {
  const Execution first = owner_in(Status::failed, Task().key("k"));
  wait_for({"work"});
  const auto outcome = submit_all({Task().key("k")}).at(0);
  EXPECT_EQ(outcome.superseded, first.id);
  EXPECT_THAT(handed_ids(), ElementsAre(outcome.execution.id));
  EXPECT_EQ(find(outcome.execution.id), handed()[0]);
}

TEST_P(HandOut, SaidTwiceItIsHandedOutOnce) {
  const Submission submission = Task().key("k");
  wait_for({"work"});
  submit_all({submission});
  const Execution running = handed().at(0);
  waiters_.requests[0] = claim_request({"work"}, 100);
  const auto again = submit_all({submission}).at(0);
  EXPECT_EQ(again.kind, SubmitOutcome::Kind::created);
  EXPECT_EQ(again.execution, running);
  EXPECT_THAT(handed_ids(), IsEmpty());
}

TEST_P(HandOut, AWorkflowThatBegins) {
  wait_for_turns();
  Submission submission = Task("flow").kind(Kind::workflow).queue("flows").input("[1]");
  submission.execution.idempotency_key = "w";
  submission.execution.identity = workflow_identity("default", "w");
  submit_all({submission});
  ASSERT_EQ(handed().size(), 1U);
  EXPECT_EQ(find(handed()[0].id), handed()[0]);
  EXPECT_THAT(waiters_.outcomes[0].events, ElementsAre(IsEmpty()));
  Turn turn = WorkflowTest::turn(handed()[0]);
  end_completed(turn);
  EXPECT_EQ(commit(turn).status, Status::completed);
}

TEST_P(HandOut, TheStepsThatATurnAsksFor) {
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task().input("1"));
  ask_task(first, Task().priority(1).input("2"));
  ask_task(first, Task().delay(1s));
  wait_for({"work"});
  const TurnOutcome outcome = store().commit_turns({&first, 1}, waiters_).at(0);
  const ExecutionId run = first.token.execution;
  EXPECT_THAT(handed_ids(), ElementsAre(step_id(run, "work", 2), step_id(run, "work", 1)));
  EXPECT_THAT(ids_of(outcome.effects.ready), ElementsAre(step_id(run, "work", 3)));
  EXPECT_EQ(handed()[0].input, "2");
  EXPECT_EQ(handed()[0].parent, run);
  for (const Execution& step : handed()) EXPECT_EQ(find(step.id), step);
  EXPECT_TRUE(complete(token_of(handed()[0])).accepted);
}

TEST_P(HandOut, TheStepThatATurnAsksForWhichFollowsAStep) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  ask_task(second, Task().input("2"));
  wait_for({"work"});
  const TurnOutcome outcome = store().commit_turns({&second, 1}, waiters_).at(0);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_THAT(outcome.effects.ready, IsEmpty());
  EXPECT_THAT(handed_ids(), ElementsAre(step_id(run.id, "work", 2)));
  EXPECT_EQ(handed()[0].input, "2");
  EXPECT_EQ(find(handed()[0].id), handed()[0]);
}

TEST_P(HandOut, TheTurnThatCouldNotFollowItsStep) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  ++second.seen;
  wait_for_turns();
  const TurnOutcome outcome = store().commit_turns({&second, 1}, waiters_).at(0);
  EXPECT_FALSE(outcome.accepted);
  EXPECT_THAT(handed_ids(), ElementsAre(run.id));
  EXPECT_EQ(waiters_.outcomes[0].events.at(0), history(run.id));
}

TEST_P(HandOut, TheTurnThatAFinishedStepMakesDueWithItsNews) {
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task());
  ask_task(first, Task());
  commit(first);
  const Execution one = claim(/*queues=*/{"work"}, 1).executions.at(0);
  wait_for_turns();
  Report report;
  report.token = token_of(one);
  report.outcome = Report::Completed{"\"done\""};
  const FinishOutcome outcome = store().finish({&report, 1}, waiters_).at(0);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_THAT(outcome.effects.ready, IsEmpty());
  ASSERT_EQ(handed().size(), 1U);
  EXPECT_EQ(find(handed()[0].id), handed()[0]);
  const std::vector<Event>& news = waiters_.outcomes[0].events.at(0);
  ASSERT_EQ(news.size(), 3U);
  EXPECT_EQ(news[2].kind, Event::Kind::closed);
  EXPECT_EQ(news[2].value, "\"done\"");
  EXPECT_EQ(news, history(handed()[0].id));
  EXPECT_THAT(claim_turns().executions, IsEmpty());
}

TEST_P(HandOut, TwoTurnsToOneWhoWaits) {
  std::vector<Report> reports;
  for (const char* id : {"v", "w"}) {
    start(id);
    Turn first = turn(claim_turn());
    ask_task(first, Task());
    commit(first);
    reports.push_back({token_of(claim_one()), Report::Completed{"1"}});
  }
  wait_for_turns();
  store().finish(reports, waiters_);
  ASSERT_EQ(handed().size(), 2U);
  ASSERT_EQ(waiters_.outcomes[0].events.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(waiters_.outcomes[0].events[i], history(handed()[i].id));
    EXPECT_EQ(find(handed()[i].id), handed()[i]);
  }
}

}  // namespace
}  // namespace hapax
