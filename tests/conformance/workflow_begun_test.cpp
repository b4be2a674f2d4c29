// Steps that a worker begins within the turn that asks for them, and turns that are kept unfinished.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Kind = Event::Kind;

class BegunSteps : public WorkflowTest {
 protected:
  // What a worker commits that has the turn. Some stores have a short way for those that name the caller's namespace
  // and the run.
  Turn next_of(const Execution& run) {
    Turn next = turn(run);
    next.name_space = "default";
    next.claimed = std::make_shared<const Execution>(run);
    return next;
  }

  static Turn::Begun& begin(Turn& turn, Task task = Task()) {
    ask_task(turn, std::move(task));
    return turn.starts.back().begun.emplace(Turn::Begun{test_secret(4711), "worker", 60s});
  }
  static void do_within(Turn& turn, std::optional<std::string> result = "\"done\"") {
    begin(turn).completed = Report::Completed{std::move(result)};
  }

  // A run of which one step was done within its first turn, which goes on.
  Execution unfinished() {
    start();
    Turn first = next_of(claim_turn());
    do_within(first);
    first.end = Turn::Unfinished{};
    const TurnOutcome outcome = commit(first);
    EXPECT_TRUE(outcome.accepted);
    EXPECT_EQ(outcome.status, Status::running);
    EXPECT_EQ(outcome.effects, Effects());
    return find(first.token.execution).value();
  }
};
HAPAX_FOR_ALL_STORES(BegunSteps);

TEST_P(BegunSteps, AStepThatWasDoneWithinTheTurnIsATaskLikeOthers) {
  const Execution run = unfinished();
  const Execution step = find(step_id(run.id, "work", 1)).value();
  EXPECT_EQ(step.status, Status::completed);
  EXPECT_EQ(step.result, "\"done\"");
  EXPECT_EQ(step.attempt, 1);
  EXPECT_EQ(step.attempt_limit, 3);
  EXPECT_EQ(step.worker, "worker");
  EXPECT_EQ(step.parent, run.id);
  EXPECT_EQ(step.step, 1);
  EXPECT_EQ(step.parent_workflow_id, "w");
  EXPECT_EQ(step.created_at, now());
  EXPECT_EQ(step.started_at, now());
  EXPECT_EQ(step.finished_at, now());
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task, Kind::closed));
  EXPECT_EQ(history(run.id)[0].execution, step.id);
  EXPECT_EQ(history(run.id)[1].value, "\"done\"");
  EXPECT_THAT(claimed_ids(), IsEmpty());
  EXPECT_TRUE(complete({step.id, 1, test_secret(4711)}, "\"done\"").accepted);  // the worker's report, repeated
  EXPECT_FALSE(complete({step.id, 1, test_secret(4712)}, "\"done\"").accepted);
}

TEST_P(BegunSteps, AnUnfinishedTurnKeepsItsLease) {
  const Execution run = unfinished();
  EXPECT_EQ(run.status, Status::running);
  EXPECT_EQ(run.run.events, 2);
  EXPECT_EQ(run.run.seen, 2);
  EXPECT_EQ(run.run.steps, 1);
  EXPECT_TRUE(run.lease_expires_at);
  EXPECT_THAT(claim_turns().executions, IsEmpty());

  Turn last = next_of(run);
  do_within(last, std::nullopt);
  end_completed(last, "7");
  const TurnOutcome outcome = commit(last);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.status, Status::completed);
  EXPECT_THAT(ids_of(outcome.effects.closed), ElementsAre(run.id));
  const Execution closed = find(run.id).value();
  EXPECT_EQ(closed.result, "7");
  EXPECT_EQ(closed.run.steps, 2);
  EXPECT_EQ(closed.run.events, 5);
  EXPECT_EQ(closed.finished_at, now());
  EXPECT_FALSE(closed.lease_expires_at);
  EXPECT_EQ(find(step_id(run.id, "work", 2)).value().result, std::nullopt);
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task, Kind::closed, Kind::task, Kind::closed, Kind::completed));
  EXPECT_EQ(commit(last).status, Status::completed);  // repeated
  EXPECT_THAT(history(run.id), SizeIs(5));
  EXPECT_EQ(outcome.run.value_or(closed), closed);
}

TEST_P(BegunSteps, WhoeverTakesOverKnowsWhatAnUnfinishedTurnKept) {
  const Execution run = unfinished();
  clock_.advance(2min);
  store().sweep(100);
  const Execution taken = claim_turn();
  EXPECT_EQ(taken.id, run.id);
  EXPECT_EQ(taken.run.steps, 1);
  EXPECT_THAT(history(run.id), SizeIs(2));
  Turn late = next_of(run);
  do_within(late);
  EXPECT_FALSE(commit(late).accepted);
  EXPECT_FALSE(find(step_id(run.id, "work", 2)));
}

TEST_P(BegunSteps, AnUnfinishedTurnThatIsRepeatedIsAnsweredAsBefore) {
  start();
  Turn first = next_of(claim_turn());
  do_within(first);
  first.end = Turn::Unfinished{};
  EXPECT_EQ(commit(first), commit(first));
  EXPECT_THAT(history(first.token.execution), SizeIs(2));
  EXPECT_EQ(find(first.token.execution).value().status, Status::running);
}

TEST_P(BegunSteps, AnUnfinishedTurnThatDoesNotKnowEverythingIsOver) {
  start();
  Turn first = next_of(claim_turn());
  signal("news", "1");
  do_within(first);
  first.end = Turn::Unfinished{};
  const TurnOutcome outcome = commit(first);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.status, Status::pending);
  EXPECT_THAT(ids_of(outcome.effects.ready), ElementsAre(first.token.execution));
  EXPECT_EQ(commit(first).status, Status::pending);
  EXPECT_THAT(kinds(first.token.execution), ElementsAre(Kind::signal, Kind::task, Kind::closed));
  claim_turn();
  EXPECT_THAT(events_, SizeIs(3));
}

TEST_P(BegunSteps, AStepThatIsStillRunningHasTheLeaseOfItsWorker) {
  start();
  Turn first = next_of(claim_turn());
  begin(first);
  const TurnOutcome outcome = commit(first);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.status, Status::suspended);
  EXPECT_EQ(outcome.effects.next_due, now() + 60s);
  const ExecutionId id = step_id(first.token.execution, "work", 1);
  EXPECT_EQ(find(id).value().status, Status::running);
  EXPECT_THAT(claimed_ids(), IsEmpty());
  EXPECT_TRUE(complete({id, 1, test_secret(4711)}, "\"later\"").accepted);
  claim_turn();
  EXPECT_EQ(events_.back().value, "\"later\"");
}

TEST_P(BegunSteps, AStepWhoseWorkerIsLostIsTriedAgain) {
  start();
  Turn first = next_of(claim_turn());
  begin(first);
  commit(first);
  clock_.advance(2min);
  store().sweep(100);
  EXPECT_EQ(claim_one().attempt, 2);
}

TEST_P(BegunSteps, WhatComesAfterTheStepIsCommittedWithIt) {
  start();
  Turn first = next_of(claim_turn());
  do_within(first);
  ask_until(first, Kind::sleep, now() + 1h);
  EXPECT_EQ(commit(first).status, Status::suspended);
  EXPECT_THAT(kinds(first.token.execution), ElementsAre(Kind::task, Kind::closed, Kind::sleep));
  clock_.advance(2h);
  store().sweep(100);
  const Execution woken = claim_turn();
  EXPECT_EQ(woken.run.seen, 2);
  EXPECT_THAT(events_, SizeIs(2));
}

TEST_P(BegunSteps, WhatWasDoneInARunThatIsCancelledMeanwhileIsKept) {
  start();
  Turn first = next_of(claim_turn());
  on_workflow(ControlRequest::Action::cancel);
  do_within(first);
  first.end = Turn::Unfinished{};
  EXPECT_FALSE(commit(first).accepted);
  const ExecutionId run = first.token.execution, step = step_id(run, "work", 1);
  EXPECT_EQ(find(run).value().status, Status::cancelled);
  EXPECT_EQ(find(step).value().status, Status::completed);
  EXPECT_THAT(kinds(run), ElementsAre(Kind::cancelled));

  // Resumed, the run asks for it again, and has its result.
  on_workflow(ControlRequest::Action::resume);
  Turn again = next_of(claim_turn());
  ask_task(again, Task());
  EXPECT_EQ(commit(again).status, Status::pending);
  EXPECT_EQ(history(run).back().value, "\"done\"");
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(BegunSteps, AStepThatIsThereAlreadyIsNotBegunAnew) {
  start();
  Turn first = next_of(claim_turn());
  on_workflow(ControlRequest::Action::cancel);
  do_within(first, "\"first\"");
  commit(first);
  on_workflow(ControlRequest::Action::resume);
  Turn again = next_of(claim_turn());
  do_within(again, "\"again\"");
  again.end = Turn::Unfinished{};
  EXPECT_FALSE(commit(again).accepted);
  EXPECT_EQ(find(step_id(again.token.execution, "work", 1)).value().result, "\"first\"");
  EXPECT_EQ(find(again.token.execution).value().run.steps, 0);
}

TEST_P(BegunSteps, AStepThatWasDoneWithinTheTurnIsListedAmongTheOthers) {
  const Execution run = unfinished();
  Turn next = next_of(run);
  ask_task(next, Task());
  commit(next);
  const ExecutionId done = step_id(run.id, "work", 1), asked = step_id(run.id, "work", 2);
  ListFilter filter;
  filter.name_space = "default";
  filter.parent = run.id;
  EXPECT_THAT(ids_of(store().list(filter)), UnorderedElementsAre(done, asked));
  filter.status = Status::completed;
  EXPECT_THAT(ids_of(store().list(filter)), ElementsAre(done));
  filter.parent.reset();
  EXPECT_THAT(ids_of(store().list(filter)), ElementsAre(done));
  const std::vector<ExecutionId> ids{asked, done};
  const auto found = store().find_all("default", ids);
  EXPECT_EQ(found.at(0), find(asked));
  EXPECT_EQ(found.at(1), find(done));
}

TEST_P(BegunSteps, AStepThatWasDoneWithinTheTurnIsClosedForGood) {
  const Execution run = unfinished();
  const ExecutionId step = step_id(run.id, "work", 1);
  const Execution before = find(step).value();
  EXPECT_FALSE(cancel(step).changed);
  EXPECT_EQ(retry(step).kind, ControlOutcome::Kind::not_retryable);
  EXPECT_EQ(find(step), before);
  EXPECT_THAT(kinds(run.id), ElementsAre(Kind::task, Kind::closed));
}

TEST_P(BegunSteps, HistoriesAreReadInPages) {
  const Execution run = unfinished();
  Turn last = next_of(run);
  do_within(last);
  command(last, Kind::side_effect, "now");
  last.events.back().value = "5";
  end_completed(last);
  commit(last);
  const std::vector<Event> all = history(run.id);
  ASSERT_THAT(all, SizeIs(6));
  for (std::size_t after = 0; after < all.size(); ++after) {
    EXPECT_THAT(store().history(run.id, all[after].no - 1, 2),
                ElementsAreArray(all.begin() + static_cast<std::ptrdiff_t>(after),
                                 all.begin() + static_cast<std::ptrdiff_t>(std::min(after + 2, all.size()))));
  }
}

TEST_P(BegunSteps, ARunThatIsResumedIsToldOfEverythingThatWasDone) {
  const Execution run = unfinished();
  on_workflow(ControlRequest::Action::cancel);
  on_workflow(ControlRequest::Action::resume);
  const Execution resumed = claim_turn();
  EXPECT_EQ(resumed.id, run.id);
  EXPECT_EQ(events_, history(run.id));
  EXPECT_EQ(events_.at(1).value, "\"done\"");
}

TEST_P(BegunSteps, AForkTakesOverWhatWasDone) {
  const Execution run = unfinished();
  Turn last = next_of(run);
  do_within(last, "\"second\"");
  end_completed(last);
  commit(last);
  fork(2);
  const Execution forked = claim_turn();
  EXPECT_EQ(forked.run.steps, 1);
  ASSERT_THAT(events_, SizeIs(3));
  EXPECT_EQ(events_[1].execution, step_id(run.id, "work", 1));
  EXPECT_EQ(events_[2].value, "\"done\"");
  EXPECT_THAT(history(run.id), SizeIs(5));
}

TEST_P(BegunSteps, StepsThatWereDoneStayAtLeastAsLongAsTheirRun) {
  set_retention("work", 1h);
  const Execution run = unfinished();
  Turn last = next_of(run);
  do_within(last);
  end_completed(last);
  commit(last);
  const ExecutionId first = step_id(run.id, "work", 1), second = step_id(run.id, "work", 2);
  clock_.advance(std::chrono::days(2));
  while (store().purge(100).more) {}
  EXPECT_TRUE(find(run.id));
  EXPECT_TRUE(find(first));
  clock_.advance(std::chrono::days(40));
  for (int i = 0; i < 3; ++i) store().purge(100);
  EXPECT_FALSE(find(run.id));
  EXPECT_FALSE(find(first));
  EXPECT_FALSE(find(second));
  EXPECT_THAT(history(run.id), IsEmpty());
}

TEST_P(BegunSteps, StepsThatWereDoneMayOutliveTheirRun) {
  set_retention("work", std::chrono::days(90));
  const Execution run = unfinished();
  Turn last = next_of(run);
  do_within(last);
  end_completed(last);
  commit(last);
  const ExecutionId step = step_id(run.id, "work", 1);
  Execution before = find(step).value();
  clock_.advance(std::chrono::days(40));
  for (int i = 0; i < 3; ++i) store().purge(100);
  EXPECT_FALSE(find(run.id));
  EXPECT_EQ(find(step), before);
  EXPECT_THAT(history(run.id), IsEmpty());
  clock_.advance(std::chrono::days(60));
  store().purge(100);
  EXPECT_FALSE(find(step));
}

TEST_P(BegunSteps, ManyTurnsAreCommittedTogetherEachByItself) {
  start();
  const Execution first = claim_turn();

  std::vector<Turn> turns{next_of(first)};
  do_within(turns[0]);
  end_completed(turns[0]);
  turns.push_back(turns[0]);
  turns[1].token.secret = test_secret(99);
  const std::vector<TurnOutcome> outcomes = store().commit_turns(turns);
  EXPECT_TRUE(outcomes[0].accepted);
  EXPECT_FALSE(outcomes[1].accepted);
}

TEST_P(BegunSteps, TooLongAHistoryFailsTheRunAndKeepsWhatWasDone) {
  QueuePolicies policies;
  policies.history_limit = 1;
  store().set_policies(std::make_shared<QueuePolicies>(policies));
  start();
  Turn first = next_of(claim_turn());
  do_within(first);
  first.end = Turn::Unfinished{};
  EXPECT_EQ(commit(first).status, Status::failed);
  EXPECT_EQ(find(step_id(first.token.execution, "work", 1)).value().status, Status::completed);
}

}  // namespace
}  // namespace hapax
