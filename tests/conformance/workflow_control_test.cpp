#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Event::Kind;
using Action = ControlRequest::Action;

class WorkflowControl : public WorkflowTest {};
HAPAX_FOR_ALL_STORES(WorkflowControl);

TEST_P(WorkflowControl, ASignalWakesWhoWaitsForIt) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::wait_signal, std::nullopt, "approve");
  commit(first);
  EXPECT_TRUE(signal("other", "1").changed);
  EXPECT_THAT(claim_turns().executions, IsEmpty());
  EXPECT_THAT(ids_of(signal("approve", "{\"by\":\"ann\"}").effects.ready), ElementsAre(run.id));
  claim_turn();
  EXPECT_EQ(events_.back().kind, Kind::signal);
  EXPECT_EQ(events_.back().step, 1);
  EXPECT_EQ(events_.back().value, "{\"by\":\"ann\"}");
}

TEST_P(WorkflowControl, ASignalThatCameFirstIsKeptForTheWait) {
  start();
  signal("approve", "1");
  signal("approve", "2");
  Turn first = turn(claim_turn());
  ask_until(first, Kind::wait_signal, std::nullopt, "approve");
  EXPECT_EQ(commit(first).status, Status::pending);
  Turn second = turn(claim_turn());
  EXPECT_EQ(events_.back().step, 1);
  EXPECT_EQ(events_.back().value, "1");
  ask_until(second, Kind::wait_signal, std::nullopt, "approve");
  commit(second);
  claim_turn();
  EXPECT_EQ(events_.back().value, "2");
}

TEST_P(WorkflowControl, AWaitForASignalHasAnEnd) {
  start();
  Turn first = turn(claim_turn());
  ask_until(first, Kind::wait_signal, now() + 1h, "approve");
  commit(first);
  clock_.advance(1h);
  store().sweep(100);
  Turn second = turn(claim_turn());
  EXPECT_EQ(events_.back().kind, Kind::fired);
  commit(second);
  signal("approve", "1");  // too late: it is kept for another wait
  EXPECT_THAT(claim_turns().executions, IsEmpty());
}

TEST_P(WorkflowControl, ASignalIsDeliveredOncePerRequestKey) {
  const Execution run = start();
  EXPECT_FALSE(signal("s", "1", "same").replayed);
  EXPECT_TRUE(signal("s", "1", "same").replayed);
  EXPECT_EQ(history(run.id).size(), 1U);
}

TEST_P(WorkflowControl, AClosedWorkflowTakesNoSignals) {
  start();
  on_workflow(Action::cancel);
  EXPECT_EQ(signal("s", "1").kind, ControlOutcome::Kind::not_open);
}

TEST_P(WorkflowControl, CancelClosesTheRunAndItsSteps) {
  const Execution run = suspended_on_task();
  const ControlOutcome outcome = on_workflow(Action::cancel);
  EXPECT_TRUE(outcome.changed);
  EXPECT_EQ(outcome.status, Status::cancelled);
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::cancelled);
  EXPECT_FALSE(on_workflow(Action::cancel).changed);
}

TEST_P(WorkflowControl, CancelFencesARunningTurn) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  on_workflow(Action::cancel);
  end_completed(first);
  EXPECT_FALSE(commit(first).accepted);
  EXPECT_EQ(status_of(run.id), Status::cancelled);
}

TEST_P(WorkflowControl, ADeadlineTimesTheRunOutWithItsSteps) {
  Submission submission = Task("flow").kind(hapax::Kind::workflow).queue("flows").deadline(1h);
  submission.execution.idempotency_key = "w";
  submission.execution.identity = workflow_identity("default", "w");
  const Execution run = submitted(submission);
  Turn first = turn(claim_turn());
  ask_task(first, Task());
  commit(first);
  clock_.advance(1h);
  store().sweep(100);
  EXPECT_EQ(status_of(run.id), Status::timed_out);
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::cancelled);
}

TEST_P(WorkflowControl, ResumeGivesAFailedStepNewAttempts) {
  const Execution run = suspended_on_task();
  fail(token_of(claim_one()), false);
  Turn second = turn(claim_turn());
  second.end = Turn::Failed{{"StepFailed", "no"}};
  EXPECT_EQ(commit(second).status, Status::failed);

  const ControlOutcome outcome = on_workflow(Action::resume);
  EXPECT_TRUE(outcome.changed);
  EXPECT_EQ(outcome.status, Status::pending);
  Turn third = turn(claim_turn());
  EXPECT_EQ(find(run.id)->run.seen, 0);
  EXPECT_EQ(commit(third).status, Status::suspended);
  complete(token_of(claim_one()), "5");
  claim_turn();
  EXPECT_EQ(events_.back().value, "5");
  EXPECT_EQ(history(run.id).front().kind, Kind::task);
}

TEST_P(WorkflowControl, ResumeGoesOnAfterACancel) {
  const Execution run = suspended_on_task();
  on_workflow(Action::cancel);
  EXPECT_TRUE(on_workflow(Action::resume).changed);
  commit(turn(claim_turn()));
  EXPECT_EQ(claim_one().id, step_id(run.id, "work", 1));
}

TEST_P(WorkflowControl, ResumeOfAnOpenOrCompletedRunChangesNothing) {
  suspended_on_task();
  EXPECT_FALSE(on_workflow(Action::resume).changed);
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  end_completed(second);
  commit(second);
  const ControlOutcome outcome = on_workflow(Action::resume);
  EXPECT_FALSE(outcome.changed);
  EXPECT_EQ(outcome.status, Status::completed);
}

TEST_P(WorkflowControl, ResumeAfterACompensationTriesTheFailedStepAgain) {
  suspended_on_task(Task("ship"));
  fail(token_of(claim_one()), false);
  Turn second = turn(claim_turn());
  ask_task(second, Task("refund"));
  commit(second);
  complete(token_of(claim_one()));
  Turn third = turn(claim_turn());
  third.end = Turn::Failed{{"StepFailed", "task 'ship' failed"}};
  commit(third);

  on_workflow(Action::resume);
  const Execution resumed = claim_turn();
  EXPECT_EQ(resumed.run.steps, 1);
  EXPECT_EQ(claim_one().type, "ship");
}

TEST_P(WorkflowControl, ResumeAfterADeadlineDropsIt) {
  Submission submission = Task("flow").kind(hapax::Kind::workflow).queue("flows").deadline(1h);
  submission.execution.idempotency_key = "w";
  submission.execution.identity = workflow_identity("default", "w");
  const Execution run = submitted(submission);
  clock_.advance(1h);
  store().sweep(100);
  EXPECT_TRUE(on_workflow(Action::resume).changed);
  EXPECT_EQ(find(run.id)->deadline_at, std::nullopt);
  store().sweep(100);
  EXPECT_EQ(status_of(run.id), Status::pending);
}

TEST_P(WorkflowControl, AForkKnowsTheStepsBeforeAndRunsTheRestAnew) {
  const Execution run = suspended_on_task(Task("a"));
  complete(token_of(claim_one()), "1");
  Turn second = turn(claim_turn());
  ask_task(second, Task("b"));
  commit(second);
  complete(token_of(claim_one()), "2");
  Turn third = turn(claim_turn());
  end_completed(third);
  commit(third);

  const ControlOutcome outcome = fork(2);
  ASSERT_EQ(outcome.kind, ControlOutcome::Kind::done);
  const Execution forked = claim_turn();
  EXPECT_EQ(forked.id, outcome.execution);
  EXPECT_EQ(forked.idempotency_key, "fork");
  EXPECT_EQ(forked.run.steps, 1);
  ASSERT_EQ(events_.size(), 3U);
  EXPECT_EQ(events_[0].kind, Kind::forked);
  EXPECT_EQ(events_[0].execution, run.id);
  EXPECT_EQ(events_[1].kind, Kind::task);
  EXPECT_EQ(events_[2].value, "1");
}

TEST_P(WorkflowControl, AForkStartsAnewWhatWasOpen) {
  const Execution run = suspended_on_task(Task("a"));
  const ControlOutcome outcome = fork(2);
  ASSERT_EQ(outcome.kind, ControlOutcome::Kind::done);
  EXPECT_THAT(claimed_ids(),
              testing::UnorderedElementsAre(step_id(run.id, "a", 1), step_id(*outcome.execution, "a", 1)));
}

TEST_P(WorkflowControl, AForkBeyondTheLastStepIsRefused) {
  suspended_on_task();
  EXPECT_EQ(fork(3).kind, ControlOutcome::Kind::no_such_step);
  EXPECT_EQ(fork(0).kind, ControlOutcome::Kind::no_such_step);
}

TEST_P(WorkflowControl, AForkUnderATakenIdIsRefused) {
  const Execution run = suspended_on_task();
  const ControlOutcome outcome = fork(1, "w");
  EXPECT_EQ(outcome.kind, ControlOutcome::Kind::identity_taken);
  EXPECT_EQ(outcome.other, run.id);
}

TEST_P(WorkflowControl, ControlOfAnUnknownWorkflowIsNotFound) {
  for (const Action action : {Action::cancel, Action::resume, Action::signal, Action::fork}) {
    EXPECT_EQ(on_workflow(action, "nobody").kind, ControlOutcome::Kind::not_found);
  }
}

TEST_P(WorkflowControl, ARequestKeyIsReplayedForTheSameWorkflowOnly) {
  start("a");
  start("b");
  EXPECT_FALSE(on_workflow(Action::cancel, "a", "k").replayed);
  EXPECT_TRUE(on_workflow(Action::cancel, "a", "k").replayed);
  EXPECT_EQ(on_workflow(Action::cancel, "b", "k").kind, ControlOutcome::Kind::key_conflict);
  EXPECT_EQ(on_workflow(Action::resume, "a", "k").kind, ControlOutcome::Kind::key_conflict);
}

TEST_P(WorkflowControl, StepsStayAsLongAsTheirRun) {
  set_retention("work", 1h);
  const Execution run = suspended_on_task();
  complete(token_of(claim_one()));
  clock_.advance(2h);
  store().purge(100);
  EXPECT_TRUE(find(step_id(run.id, "work", 1)));
  Turn second = turn(claim_turn());
  end_completed(second);
  commit(second);
  clock_.advance(24h * 40);
  while (store().purge(100).more) {}
  store().purge(100);
  EXPECT_FALSE(find(run.id));
  EXPECT_FALSE(find(step_id(run.id, "work", 1)));
  EXPECT_THAT(history(run.id), IsEmpty());
}

TEST_P(WorkflowControl, TheSameWorkflowIdIsOneRun) {
  const Execution run = start();
  Submission again = Task("flow").kind(hapax::Kind::workflow).queue("flows");
  again.execution.idempotency_key = "w";
  again.execution.identity = workflow_identity("default", "w");
  const SubmitOutcome outcome = submit(again);
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::duplicate);
  EXPECT_EQ(outcome.execution.id, run.id);
}

TEST_P(WorkflowControl, AFailureThatWasDealtWithIsNotTriedAgainByAResume) {
  suspended_on_task(Task("card_a"));
  fail(token_of(claim_one()), false);
  Turn second = turn(claim_turn());
  ask_task(second, Task("card_b"));
  commit(second);
  complete(token_of(claim_one()));
  on_workflow(Action::cancel);
  on_workflow(Action::resume);
  EXPECT_EQ(claim_turn().run.steps, 2);
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(WorkflowControl, ResumeTakesBackTheCancelOfAStepThatStillRuns) {
  suspended_on_task();
  const Execution task = claim_one();
  on_workflow(Action::cancel);
  EXPECT_TRUE(find(task.id)->cancel_requested_at);
  on_workflow(Action::resume);
  EXPECT_EQ(find(task.id)->cancel_requested_at, std::nullopt);
  EXPECT_EQ(find(task.id)->cancel_by, std::nullopt);
  EXPECT_TRUE(complete(token_of(task)).accepted);
}

TEST_P(WorkflowControl, AStepThatWasTakenOutIsFenced) {
  suspended_on_task(Task("ship"));
  fail(token_of(claim_one()), false);
  Turn second = turn(claim_turn());
  ask_task(second, Task("refund"));
  ask_until(second, Kind::sleep, now());
  commit(second);
  const Execution refund = claim_one();
  Turn third = turn(claim_turn());
  third.end = Turn::Failed{{"StepFailed", "task 'ship' failed"}};
  commit(third);
  on_workflow(Action::resume);
  EXPECT_FALSE(complete(token_of(refund)).accepted);
  const Execution run = claim_turn();
  EXPECT_EQ(run.run.steps, 1);
  for (const Event& event : history(run.id)) EXPECT_LE(event.step, 1);
}

TEST_P(WorkflowControl, AStepWhoseKeyWentToAnotherGetsThatOnesResult) {
  suspended_on_task(Task("charge").key("k"));
  fail(token_of(claim_one()), false);
  Turn second = turn(claim_turn());
  second.end = Turn::Failed{{"StepFailed", "no"}};
  commit(second);
  submitted(Task("charge").key("k"));
  complete(token_of(claim_one()), "8");
  on_workflow(Action::resume);
  claim_turn();
  EXPECT_EQ(events_.back().kind, Kind::closed);
  EXPECT_EQ(events_.back().value, "8");
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(WorkflowControl, SignalsGoAlongWhenAWorkflowContinuesAsNew) {
  start();
  Turn first = turn(claim_turn());
  signal("go", "1");
  first.end = Turn::Continued{test_id(9'000'002), "2", hash_input("2")};
  commit(first);
  Turn second = turn(claim_turn());
  ask_until(second, Kind::wait_signal, std::nullopt, "go");
  EXPECT_EQ(commit(second).status, Status::pending);
  claim_turn();
  EXPECT_EQ(events_.back().value, "1");
}

TEST_P(WorkflowControl, AForkDoesNotDeliverAConsumedSignalAgain) {
  start();
  signal("go", "1");
  Turn first = turn(claim_turn());
  ask_until(first, Kind::wait_signal, std::nullopt, "go");
  commit(first);
  Turn second = turn(claim_turn());
  end_completed(second);
  commit(second);
  fork(2);
  Turn forked = turn(claim_turn());
  ask_until(forked, Kind::wait_signal, std::nullopt, "go");
  EXPECT_EQ(commit(forked).status, Status::suspended);
}

}  // namespace
}  // namespace hapax
