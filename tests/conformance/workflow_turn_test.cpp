#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Event::Kind;

class Workflows : public WorkflowTest {};
HAPAX_FOR_ALL_STORES(Workflows);

TEST_P(Workflows, ATurnIsClaimedApartFromTasks) {
  const Execution run = start();
  EXPECT_THAT(claimed_ids({"flows"}), IsEmpty());
  EXPECT_THAT(ids_of(claim_turns().executions), ElementsAre(run.id));
  EXPECT_THAT(claim_turns().executions, IsEmpty());
}

TEST_P(Workflows, TheLimitsOfAQueueAreOfItsTasks) {
  set_policy("flows", {.max_running = 0});
  start();
  EXPECT_EQ(claim_turns().executions.size(), 1U);
}

TEST_P(Workflows, APausedQueueHandsOutNoTurns) {
  set_policy("flows", {.paused = true});
  start();
  EXPECT_THAT(claim_turns().executions, IsEmpty());
}

TEST_P(Workflows, ATurnStartsItsStepsAndSuspendsTheRun) {
  const Execution run = suspended_on_task();
  EXPECT_EQ(run.status, Status::suspended);
  EXPECT_EQ(run.run.steps, 1);
  const Execution task = claim_one();
  EXPECT_EQ(task.id, step_id(run.id, "work", 1));
  EXPECT_EQ(task.parent, run.id);
  EXPECT_EQ(task.step, 1);
  EXPECT_EQ(task.parent_workflow_id, "w");
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task));
  EXPECT_EQ(history(run.id).at(0).execution, task.id);
  EXPECT_THAT(claim_turns().executions, IsEmpty());
}

TEST_P(Workflows, TheSameIdWithAnotherTypeIsAConflict) {
  const Execution run = start("w");
  Submission other = Task("refund").kind(hapax::Kind::workflow).queue("flows").reuse(Reuse::reject);
  other.execution.idempotency_key = "w";
  other.execution.identity = workflow_identity("default", "w");
  for (const bool dry_run : {true, false}) {
    other.dry_run = dry_run;
    const SubmitOutcome outcome = submit(other);
    EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::conflict);
    EXPECT_EQ(outcome.execution, run);
  }
  EXPECT_EQ(find(other.execution.id), std::nullopt);
}

TEST_P(Workflows, AStepWhoseKeyIsOfAnotherTypeFailsWithAConflict) {
  const Scope global{Scope::Tag::global, ""};
  const Execution owner = submitted(Task("charge").key("k").scope(global).queue("other"));
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task("refund").key("k").scope(global));
  EXPECT_EQ(commit(first).status, Status::pending);
  const Event outcome = history(first.token.execution).at(1);
  EXPECT_EQ(outcome.status, Status::failed);
  EXPECT_EQ(outcome.error->type, "IdempotencyConflict");
  EXPECT_THAT(outcome.error->message, testing::HasSubstr("another type"));
  EXPECT_EQ(find(owner.id), owner);
}

TEST_P(Workflows, AChildWhoseIdIsOfAnotherTypeFailsWithAConflict) {
  start("kid");
  claim_turn();
  start("w");
  Turn first = turn(claim_turn());
  Submission child = Task("refund").kind(hapax::Kind::workflow).queue("flows");
  child.execution.idempotency_key = "kid";
  child.execution.identity = workflow_identity("default", "kid");
  const Event asked = command(first, Kind::child, "refund");
  first.starts.push_back({asked.step, child});
  EXPECT_EQ(commit(first).status, Status::pending);
  EXPECT_EQ(history(first.token.execution).at(1).error->type, "IdempotencyConflict");
}

TEST_P(Workflows, HistoryTellsWhichStepsStandForATaskOfBefore) {
  const Execution done = owner_in(Status::completed, Task().key("done"));
  const Execution open = submitted(Task().key("open").queue("other"));
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task().key("done"));
  ask_task(first, Task().key("open").queue("other"));
  ask_task(first, Task().key("fresh"));
  commit(first);
  const std::vector<Event> events = history(first.token.execution);
  EXPECT_EQ(events.at(0).execution, done.id);
  EXPECT_EQ(events.at(0).status, Status::completed);
  EXPECT_EQ(events.at(1).execution, open.id);
  EXPECT_EQ(events.at(1).status, Status::pending);
  EXPECT_EQ(events.at(2).status, std::nullopt);
  for (const std::size_t step : {0, 1}) EXPECT_TRUE(is_deduplicated(events.at(step)));
  EXPECT_FALSE(is_deduplicated(events.at(2)));
  EXPECT_FALSE(is_deduplicated(events.at(3)));  // the outcome of the first
}

TEST_P(Workflows, ARunThatContinuesIsNeverOlderThanTheLastOne) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  first.end = Turn::Continued{test_id(6'000'000), "2", hash_input("2")};
  clock_.advance(-5s);
  EXPECT_TRUE(commit(first).accepted);
  const Execution next = find(test_id(6'000'000)).value();
  EXPECT_EQ(next.created_at, run.created_at);
  EXPECT_EQ(next.run_at, now());
}

TEST_P(Workflows, AFinishedStepWakesItsRunInTheSameCommit) {
  const Execution run = suspended_on_task();
  const FinishOutcome finished = complete(token_of(claim_one()), "\"done\"");
  EXPECT_THAT(ids_of(finished.effects.ready), ElementsAre(run.id));
  const Execution woken = claim_turn();
  EXPECT_EQ(woken.run.seen, 0);
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].kind, Kind::task);
  EXPECT_EQ(events_[1].kind, Kind::closed);
  EXPECT_EQ(events_[1].step, 1);
  EXPECT_EQ(events_[1].status, Status::completed);
  EXPECT_EQ(events_[1].value, "\"done\"");
}

TEST_P(Workflows, AFailedStepTellsItsError) {
  suspended_on_task();
  fail(token_of(claim_one()), false);
  claim_turn();
  EXPECT_EQ(events_.at(1).status, Status::failed);
  EXPECT_TRUE(events_.at(1).error.has_value());
}

TEST_P(Workflows, AStepThatIsRetriedWakesNobody) {
  suspended_on_task();
  fail(token_of(claim_one()), true);
  EXPECT_THAT(claim_turns().executions, IsEmpty());
}

TEST_P(Workflows, OnlyWhatTheLastTurnDidNotKnowIsHandedOut) {
  suspended_on_task();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  EXPECT_EQ(second.seen, 2);
  ask_task(second, Task());
  commit(second);
  complete(token_of(claim_one()));
  const Execution run = claim_turn();
  EXPECT_EQ(run.run.seen, 2);
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].no, 3);
  EXPECT_EQ(events_[1].step, 2);
}

TEST_P(Workflows, WhatComesDuringATurnMakesTheNextOneFollowAtOnce) {
  const Execution run = suspended_on_task();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  signal("hello", "1");
  ask_until(second, Kind::sleep, now() + 1h);
  EXPECT_EQ(commit(second).status, Status::pending);
  claim_turn();
  EXPECT_EQ(events_.front().kind, Kind::signal);
}

// ---- turns that follow the end of a step

TEST_P(Workflows, TheTurnThatFollowsAStepIsCommittedWithItsEnd) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  ask_task(second, Task("more"));
  const TurnOutcome outcome = commit(second);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.status, Status::suspended);
  ASSERT_TRUE(outcome.step.has_value());
  EXPECT_TRUE(outcome.step->accepted);
  EXPECT_EQ(outcome.step->status, Status::completed);
  const ExecutionId next = step_id(run.id, "more", 2);
  EXPECT_THAT(ids_of(outcome.effects.ready), ElementsAre(next));
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task, Kind::closed, Kind::task));
  EXPECT_THAT(claim_turns().executions, IsEmpty());

  Turn last = following(find(run.id).value(), claim_one());
  EXPECT_EQ(last.token, second.token.next());
  end_completed(last, "7");
  EXPECT_EQ(commit(last).status, Status::completed);
  EXPECT_EQ(find(run.id)->result, "7");
  EXPECT_EQ(find(next)->status, Status::completed);
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task, Kind::closed, Kind::task, Kind::closed, Kind::completed));
}

TEST_P(Workflows, AFollowingTurnThatIsRepeatedIsAnsweredAsBefore) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  ask_task(second, Task("more"));
  const TurnOutcome first_answer = commit(second);
  const TurnOutcome again = commit(second);
  EXPECT_TRUE(again.accepted);
  EXPECT_EQ(again.status, first_answer.status);
  EXPECT_TRUE(again.step->accepted);
  EXPECT_EQ(kinds(run.id).size(), 3U);
}

TEST_P(Workflows, AFollowingTurnThatDoesNotKnowEverythingOnlyEndsItsStep) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  signal("hello", "1");
  ask_task(second, Task("more"));
  const TurnOutcome outcome = commit(second);
  EXPECT_FALSE(outcome.accepted);
  EXPECT_TRUE(outcome.step->accepted);
  EXPECT_THAT(ids_of(outcome.effects.ready), ElementsAre(run.id));
  claim_turn();
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task, Kind::signal, Kind::closed));
  EXPECT_FALSE(commit(second).accepted);
}

TEST_P(Workflows, OnlyWhoTookTheLastTurnMayFollow) {
  const Execution run = suspended_on_task();
  Turn stranger = following(run, claim_one());
  stranger.token.secret.bytes[0] ^= 1;
  const TurnOutcome outcome = commit(stranger);
  EXPECT_FALSE(outcome.accepted);
  EXPECT_TRUE(outcome.step->accepted);
  EXPECT_THAT(ids_of(claim_turns().executions), ElementsAre(run.id));
}

TEST_P(Workflows, AFollowingTurnWhoseStepIsLostChangesNothing) {
  const Execution run = suspended_on_task();
  Turn late = following(run, claim_one());
  ++late.step->token.attempt;
  const TurnOutcome outcome = commit(late);
  EXPECT_FALSE(outcome.accepted);
  EXPECT_FALSE(outcome.step->accepted);
  EXPECT_EQ(find(run.id), run);
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task));
}

TEST_P(Workflows, ATurnFollowsNothingButAStepOfItsOwn) {
  const Execution run = suspended_on_task();
  complete(token_of(claim_one()));
  submitted(Task("other"));
  const Execution other = claim_one();
  const TurnOutcome outcome = commit(following(run, other));
  EXPECT_FALSE(outcome.accepted);
  EXPECT_FALSE(outcome.step->accepted);
  EXPECT_EQ(find(run.id)->status, Status::pending);
  EXPECT_EQ(find(other.id)->status, Status::running);
}

TEST_P(Workflows, AStepThatIsTriedAgainHasNoTurnThatFollows) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  second.step->outcome = Report::Failed{{"E", "m"}, true};
  const TurnOutcome outcome = commit(second);
  EXPECT_FALSE(outcome.accepted);
  EXPECT_EQ(outcome.step->status, Status::pending);
  EXPECT_TRUE(outcome.step->run_at.has_value());
  EXPECT_EQ(find(run.id)->status, Status::suspended);
}

TEST_P(Workflows, APausedQueueLetsNoTurnFollow) {
  const Execution run = suspended_on_task();
  Turn second = following(run, claim_one());
  set_policy("flows", {.paused = true});
  EXPECT_FALSE(commit(second).accepted);
  EXPECT_EQ(find(run.id)->status, Status::pending);
}

TEST_P(Workflows, CompletingClosesTheRunWithItsResult) {
  start();
  Turn only = turn(claim_turn());
  end_completed(only, "{\"ok\":true}");
  const TurnOutcome outcome = commit(only);
  EXPECT_EQ(outcome.status, Status::completed);
  EXPECT_THAT(ids_of(outcome.effects.closed), ElementsAre(only.token.execution));
  const Execution run = find(only.token.execution).value();
  EXPECT_EQ(run.result, "{\"ok\":true}");
  EXPECT_EQ(run.finished_at, now());
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::completed));
}

TEST_P(Workflows, FailingClosesTheRunAndCancelsItsOpenSteps) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_task(first, Task());
  ask_until(first, Kind::sleep, now());
  commit(first);
  Turn second = turn(claim_turn());
  second.end = Turn::Failed{{"Oops", "it broke"}};
  EXPECT_EQ(commit(second).status, Status::failed);
  EXPECT_EQ(find(run.id)->error->message, "it broke");
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::cancelled);
}

TEST_P(Workflows, CompletingLeavesOpenStepsToFinish) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_task(first, Task());
  end_completed(first);
  commit(first);
  EXPECT_TRUE(complete(token_of(claim_one())).accepted);
  EXPECT_EQ(status_of(run.id), Status::completed);
}

TEST_P(Workflows, AStaleTurnChangesNothing) {
  start();
  const Execution first = claim_turn();
  clock_.advance(61s);
  store().sweep(100);
  const Execution second = claim_turn();
  Turn stale = turn(first);
  end_completed(stale);
  EXPECT_FALSE(commit(stale).accepted);
  EXPECT_EQ(status_of(first.id), Status::running);
  Turn good = turn(second);
  end_completed(good);
  EXPECT_TRUE(commit(good).accepted);
}

TEST_P(Workflows, ALostTurnNeverFailsTheRun) {
  const Execution run = start();
  for (const Status then : {Status::pending, Status::pending, Status::suspended}) {
    claim_turn();
    clock_.advance(61s);
    store().sweep(100);
    EXPECT_EQ(status_of(run.id), then);
  }
  EXPECT_TRUE(waits_for_resume(find(run.id).value()));
}

TEST_P(Workflows, RepeatingACommitAnswersAgainAndDoesNothing) {
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task());
  EXPECT_TRUE(commit(first).accepted);
  const TurnOutcome again = commit(first);
  EXPECT_TRUE(again.accepted);
  EXPECT_EQ(again.status, Status::suspended);
  EXPECT_THAT(again.effects.ready, IsEmpty());
  EXPECT_EQ(history(first.token.execution).size(), 1U);
}

TEST_P(Workflows, ATurnIsNotFinishedLikeATask) {
  const Execution run = start();
  EXPECT_FALSE(complete(token_of(claim_turn())).accepted);
  EXPECT_EQ(status_of(run.id), Status::running);
}

TEST_P(Workflows, ASleepWakesTheRunWhenItIsOver) {
  start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::sleep, now() + 24h);
  const TurnOutcome outcome = commit(first);
  EXPECT_EQ(outcome.status, Status::suspended);
  EXPECT_EQ(outcome.effects.next_due, now() + 24h);
  clock_.advance(24h - 1ms);
  EXPECT_THAT(store().sweep(100).effects.ready, IsEmpty());
  clock_.advance(1ms);
  EXPECT_THAT(ids_of(store().sweep(100).effects.ready), ElementsAre(first.token.execution));
  claim_turn();
  EXPECT_EQ(events_.back().kind, Kind::fired);
  EXPECT_EQ(events_.back().step, 1);
}

TEST_P(Workflows, OfTwoSleepsTheShorterWakesFirst) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::sleep, now() + 2h);
  ask_until(first, Kind::sleep, now() + 1h);
  commit(first);
  clock_.advance(1h);
  store().sweep(100);
  Turn second = turn(claim_turn());
  EXPECT_EQ(events_.back().step, 2);
  EXPECT_EQ(commit(second).status, Status::suspended);
  EXPECT_EQ(find(run.id)->run.wake_at, now() + 1h);
  clock_.advance(1h);
  store().sweep(100);
  claim_turn();
  EXPECT_EQ(events_.back().step, 1);
}

TEST_P(Workflows, ASleepThatIsOverAtOnceKeepsTheRunPending) {
  start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::sleep, now());
  EXPECT_EQ(commit(first).status, Status::pending);
}

TEST_P(Workflows, AKeyedStepOfACompletedTaskYieldsItsResultAtOnce) {
  submitted(Task("charge").key("order-1").queue("pay"));
  complete(token_of(claim_one("pay")), "\"paid\"");
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task("charge").key("order-1").queue("pay"));
  EXPECT_EQ(commit(first).status, Status::pending);
  claim_turn();
  EXPECT_EQ(events_.back().kind, Kind::closed);
  EXPECT_EQ(events_.back().value, "\"paid\"");
  EXPECT_THAT(claimed_ids({"pay"}), IsEmpty());
}

TEST_P(Workflows, AKeyedStepOfAnOpenTaskWaitsForIt) {
  const Execution other = submitted(Task("charge").key("order-1").queue("pay"));
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task("charge").key("order-1").queue("pay"));
  EXPECT_EQ(commit(first).status, Status::suspended);
  EXPECT_EQ(history(first.token.execution).at(0).execution, other.id);
  complete(token_of(claim_one("pay")), "7");
  claim_turn();
  EXPECT_EQ(events_.back().value, "7");
}

TEST_P(Workflows, AKeyedStepWithAnotherInputFailsAsAConflict) {
  submitted(Task("charge").key("order-1").input("1"));
  start();
  Turn first = turn(claim_turn());
  ask_task(first, Task("charge").key("order-1").input("2"));
  EXPECT_EQ(commit(first).status, Status::pending);
  claim_turn();
  EXPECT_EQ(events_.back().status, Status::failed);
  EXPECT_EQ(events_.back().error->type, "IdempotencyConflict");
}

TEST_P(Workflows, AChildTellsItsParentWhenItIsClosed) {
  start();
  Turn first = turn(claim_turn());
  Submission child = Task("child").kind(hapax::Kind::workflow).queue("flows");
  child.execution.idempotency_key = "kid";
  child.execution.identity = workflow_identity("default", "kid");
  const Event event = command(first, Kind::child, "child");
  first.starts.push_back({event.step, child});
  commit(first);
  Turn of_child = turn(claim_turn());
  EXPECT_EQ(find(of_child.token.execution)->parent, first.token.execution);
  end_completed(of_child, "42");
  commit(of_child);
  claim_turn();
  EXPECT_EQ(events_.back().kind, Kind::closed);
  EXPECT_EQ(events_.back().value, "42");
}

TEST_P(Workflows, ContinuingAsNewStartsTheNextRunUnderTheSameId) {
  const Execution old = start();
  Turn first = turn(claim_turn());
  first.end = Turn::Continued{test_id(9'000'001), "{\"n\":2}", hash_input("{\"n\":2}")};
  EXPECT_EQ(commit(first).status, Status::completed);
  EXPECT_EQ(find(old.id)->run.continued_as, test_id(9'000'001));
  const Execution next = claim_turn();
  EXPECT_EQ(next.id, test_id(9'000'001));
  EXPECT_EQ(next.input, "{\"n\":2}");
  EXPECT_EQ(next.idempotency_key, "w");
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_EQ(store().find_identity(workflow_identity("default", "w").hash)->entry.owner, next.id);
}

TEST_P(Workflows, AStuckTurnLeavesTheRunSuspendedAndComesBack) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  first.end = Turn::Stuck{{"NonDeterminism", "step 1: expected a, found b"}};
  EXPECT_EQ(commit(first).status, Status::suspended);
  EXPECT_EQ(find(run.id)->error->type, "NonDeterminism");
  const auto wake_at = find(run.id)->run.wake_at;
  ASSERT_TRUE(wake_at);
  EXPECT_LE(*wake_at, now() + 1s);
  clock_.advance(1s);
  store().sweep(100);
  Turn second = turn(claim_turn());
  end_completed(second);
  EXPECT_EQ(commit(second).status, Status::completed);
  EXPECT_EQ(find(run.id)->error, std::nullopt);
}

TEST_P(Workflows, AStepOutOfOrderIsStuck) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::sleep, now() + 1h);
  first.events.back().step = 5;
  EXPECT_EQ(commit(first).status, Status::suspended);
  EXPECT_EQ(find(run.id)->error->type, "InvalidTurn");
}

TEST_P(Workflows, TooLongAHistoryFailsTheRun) {
  QueuePolicies policies;
  policies.history_limit = 1;
  store().set_policies(std::make_shared<QueuePolicies>(policies));
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::sleep, now() + 1h);
  ask_until(first, Kind::sleep, now() + 1h);
  EXPECT_EQ(commit(first).status, Status::failed);
  EXPECT_EQ(find(run.id)->error->type, "HistoryLimitExceeded");
}

}  // namespace
}  // namespace hapax
