// Cancelling steps, publishing, signals between workflows, a cancel that the code may answer, and turns that lose their
// workers.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

class WorkflowVerbs : public WorkflowTest {
 protected:
  static void ask_cancel(Turn& turn, std::int32_t step, const std::string& type = "") {
    command(turn, Event::Kind::cancel_step, type);
    turn.events.back().value = std::to_string(step);
  }
  static void ask_signal(Turn& turn, const std::string& workflow_id, const std::string& name) {
    command(turn, Event::Kind::send_signal, name);
    turn.events.back().key = workflow_id;
    turn.events.back().value = "7";
  }
  ControlOutcome request_cancel(std::optional<Duration> grace = {}) {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = "ask";
    request.action = ControlRequest::Action::cancel;
    request.workflow_id = "w";
    request.asks = true;
    request.grace = grace;
    request.payload = "\"by the customer\"";
    return store().control({&request, 1}).at(0);
  }
  Event last_event(const ExecutionId& run) { return history(run).back(); }
  void lose_turn() {
    claim_turn();
    clock_.advance(60s);
    store().sweep(100);
  }
};
HAPAX_FOR_ALL_STORES(WorkflowVerbs);

TEST_P(WorkflowVerbs, ACancelledTimerAndWaitEndAtOnceAndSwallowNoSignal) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Event::Kind::sleep, now() + 1h);
  ask_until(first, Event::Kind::wait_signal, std::nullopt, "go");
  ask_cancel(first, 1);
  ask_cancel(first, 2);
  EXPECT_EQ(commit(first).status, Status::pending) << "there is news";
  const Execution claimed = claim_turn();
  ASSERT_EQ(events_.size(), 6U);
  EXPECT_EQ(events_.at(4).step, 1);
  EXPECT_EQ(events_.at(4).kind, Event::Kind::closed);
  EXPECT_EQ(events_.at(4).status, Status::cancelled);
  EXPECT_EQ(events_.at(5).step, 2);
  signal("go", "1");
  EXPECT_EQ(last_event(run.id).step, 0) << "nobody waits: it is kept";
  Turn second = turn(claimed);
  ask_until(second, Event::Kind::wait_signal, std::nullopt, "go");
  commit(second);
  EXPECT_EQ(last_event(run.id).kind, Event::Kind::signal);
  EXPECT_EQ(last_event(run.id).step, 5);
}

TEST_P(WorkflowVerbs, ACancelledTaskIsClosedIfItIsPendingAndAskedToStopIfItRuns) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_task(first, Task("a"));
  ask_task(first, Task("b"));
  commit(first);
  const Execution running = claim_one();
  const std::string other = running.type == "a" ? "b" : "a";
  signal("x", "1");  // so that there is a turn
  Turn second = turn(find(run.id).value());
  const auto claimed = claim_turns();
  ASSERT_TRUE(claimed.executions.empty()) << "a signal that nobody waits for wakes nobody";
  second = following(find(run.id).value(), running);
  ask_cancel(second, running.step == 1 ? 2 : 1, other);
  EXPECT_TRUE(commit(second).accepted);
  EXPECT_EQ(status_of(step_id(run.id, other, running.step == 1 ? 2 : 1)), Status::cancelled);
  EXPECT_EQ(last_event(run.id).status, Status::cancelled);
  EXPECT_EQ(find(run.id)->status, Status::pending);
}

TEST_P(WorkflowVerbs, CancellingAStepThatIsClosedOrUnknownChangesNothing) {
  const Execution run = suspended_on_task();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  ask_cancel(second, 1, "work");
  ask_cancel(second, 1, "other");
  EXPECT_EQ(commit(second).status, Status::suspended);
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::completed);
}

TEST_P(WorkflowVerbs, APublishedValueIsAnEventWithoutAnOutcome) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  command(first, Event::Kind::publish, "packed_by");
  first.events.back().value = "\"eve\"";
  EXPECT_EQ(commit(first).status, Status::suspended);
  EXPECT_EQ(last_event(run.id).kind, Event::Kind::publish);
  EXPECT_EQ(last_event(run.id).value, "\"eve\"");
}

TEST_P(WorkflowVerbs, ASignalGoesToAnotherWorkflowOnce) {
  const Execution sender = start("w");
  Turn first = turn(claim_turn());
  const Execution receiver = start("other");
  ask_signal(first, "other", "restock");
  ask_signal(first, "nobody", "restock");
  commit(first);
  EXPECT_EQ(last_event(receiver.id).kind, Event::Kind::signal);
  EXPECT_EQ(last_event(receiver.id).value, "7");
  const auto events = history(sender.id);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events.at(2).status, Status::completed);
  EXPECT_EQ(events.at(3).status, Status::failed);
  EXPECT_EQ(events.at(3).error->type, "WorkflowNotFound");
  commit(first);
  EXPECT_EQ(history(receiver.id).size(), 1U) << "the same turn again sends nothing";
}

TEST_P(WorkflowVerbs, ASignalEndsTheOthersWaitAndACloseWorkflowRefusesIt) {
  const Execution receiver = start("other");
  Turn waits = turn(claim_turn());
  ask_until(waits, Event::Kind::wait_signal, std::nullopt, "restock");
  commit(waits);
  const Execution sender = start("w");
  Turn first = turn(claim_turn());
  ask_signal(first, "other", "restock");
  const TurnOutcome outcome = commit(first);
  EXPECT_EQ(status_of(receiver.id), Status::pending);
  EXPECT_EQ(last_event(receiver.id).step, 1);
  on_workflow(ControlRequest::Action::cancel, "other");
  Turn second = turn(claim_turn());
  ask_signal(second, "other", "restock");
  commit(second);
  EXPECT_EQ(last_event(sender.id).error->type, "WorkflowClosed");
}

TEST_P(WorkflowVerbs, AResumeSendsASignalAgainThatHadFailed) {
  const Execution sender = start("w");
  Turn first = turn(claim_turn());
  ask_signal(first, "other", "restock");
  commit(first);
  Turn second = turn(claim_turn());
  second.end = Turn::Failed{AttemptError{"StepFailed", "WorkflowNotFound"}};
  commit(second);
  EXPECT_EQ(status_of(sender.id), Status::failed);
  const Execution receiver = start("other");
  on_workflow(ControlRequest::Action::resume, "w");
  EXPECT_EQ(last_event(receiver.id).kind, Event::Kind::signal);
  EXPECT_EQ(last_event(receiver.id).value, "7");
  EXPECT_EQ(last_event(sender.id).kind, Event::Kind::closed);
  EXPECT_EQ(last_event(sender.id).status, Status::completed);
}

TEST_P(WorkflowVerbs, AWorkflowMaySignalItself) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Event::Kind::wait_signal, std::nullopt, "go");
  ask_signal(first, "w", "go");
  EXPECT_EQ(commit(first).status, Status::pending);
  const auto events = history(run.id);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events.at(2).kind, Event::Kind::signal);
  EXPECT_EQ(events.at(2).step, 1);
  EXPECT_EQ(events.at(3).step, 2);
}

TEST_P(WorkflowVerbs, ARequestedCancelIsAnEventThatWakesTheCode) {
  const Execution run = suspended_on_task();
  const ControlOutcome outcome = request_cancel();
  EXPECT_TRUE(outcome.changed);
  EXPECT_EQ(outcome.status, Status::pending);
  EXPECT_EQ(last_event(run.id).kind, Event::Kind::cancel_requested);
  EXPECT_EQ(last_event(run.id).value, "\"by the customer\"");
  EXPECT_TRUE(request_cancel().replayed);
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::pending) << "nothing is cancelled yet";
  Turn second = turn(claim_turn());
  second.end = Turn::Failed{{"CancelRequested", "its cancellation was requested"}};
  EXPECT_EQ(commit(second).status, Status::cancelled) << "the code did not answer it";
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::cancelled);
}

TEST_P(WorkflowVerbs, CodeMayAnswerARequestedCancelAndComplete) {
  const Execution run = suspended_on_task();
  request_cancel(1h);
  Turn second = turn(claim_turn());
  end_completed(second);
  EXPECT_EQ(commit(second).status, Status::completed);
  clock_.advance(2h);
  store().sweep(100);
  EXPECT_EQ(status_of(run.id), Status::completed);
}

TEST_P(WorkflowVerbs, AfterItsGraceARequestedCancelClosesTheWorkflow) {
  const Execution run = suspended_on_task();
  request_cancel(5min);
  Turn second = turn(claim_turn());
  EXPECT_EQ(commit(second).status, Status::suspended);
  clock_.advance(5min);
  store().sweep(100);
  EXPECT_EQ(status_of(run.id), Status::cancelled);
  EXPECT_EQ(find(run.id)->error->type, "CancelGraceExceeded");
  EXPECT_EQ(status_of(step_id(run.id, "work", 1)), Status::cancelled);
}

TEST_P(WorkflowVerbs, ThePlainCancelClosesAWorkflowThatWasAskedBefore) {
  const Execution run = suspended_on_task();
  request_cancel();
  EXPECT_TRUE(on_workflow(ControlRequest::Action::cancel).changed);
  EXPECT_EQ(status_of(run.id), Status::cancelled);
}

TEST_P(WorkflowVerbs, ATurnThatLostThreeWorkersIsStuckUntilItIsResumed) {
  const Execution run = start();
  lose_turn();
  lose_turn();
  EXPECT_EQ(status_of(run.id), Status::pending);
  lose_turn();
  EXPECT_EQ(status_of(run.id), Status::suspended);
  EXPECT_EQ(find(run.id)->error->type, "WorkerLost");
  EXPECT_EQ(find(run.id)->run.stuck, 1);
  EXPECT_EQ(kinds(run.id), std::vector{Event::Kind::stuck});
  signal("go", "1");
  EXPECT_TRUE(claim_turns().executions.empty()) << "a signal does not hand it out again";
  const ControlOutcome resumed = on_workflow(ControlRequest::Action::resume);
  EXPECT_TRUE(resumed.changed);
  EXPECT_EQ(resumed.status, Status::pending);
  Turn turn_after = turn(claim_turn());
  end_completed(turn_after);
  EXPECT_EQ(commit(turn_after).status, Status::completed);
}

TEST_P(WorkflowVerbs, ACommittedTurnForgetsTheLostOnes) {
  const Execution run = start();
  lose_turn();
  lose_turn();
  Turn kept = turn(claim_turn());
  ask_until(kept, Event::Kind::sleep, now() + 1s);
  commit(kept);
  clock_.advance(1s);
  store().sweep(100);
  lose_turn();
  lose_turn();
  EXPECT_EQ(status_of(run.id), Status::pending);
}

}  // namespace
}  // namespace hapax
