// A committed turn that is sent again is answered as the first time, though its workflow went on meanwhile.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Event::Kind;

class RepeatedTurns : public WorkflowTest {
 protected:
  // A run whose first turn has asked for a task; the turn as it was sent.
  Turn first_turn() {
    start();
    Turn first = turn(claim_turn());
    ask_task(first, Task());
    EXPECT_EQ(commit(first).status, Status::suspended);
    return first;
  }

  // The claimable turn, which waits for a signal.
  Turn turn_that_waits() {
    Turn waiting = turn(claim_turn());
    ask_until(waiting, Kind::wait_signal, std::nullopt, "hello");
    EXPECT_EQ(commit(waiting).status, Status::suspended);
    return waiting;
  }
  Turn next_turn() {
    signal("hello", "1");
    return turn_that_waits();
  }

  void expect_answered_again(const Turn& sent, Status status = Status::suspended) {
    const auto before = history(sent.token.execution);
    const auto stored = find(sent.token.execution);
    const TurnOutcome again = commit(sent);
    EXPECT_TRUE(again.accepted);
    EXPECT_EQ(again.status, status);
    EXPECT_THAT(again.effects.ready, IsEmpty());
    EXPECT_EQ(history(sent.token.execution), before);
    EXPECT_EQ(find(sent.token.execution), stored);
  }
};
HAPAX_FOR_ALL_STORES(RepeatedTurns);

TEST_P(RepeatedTurns, AfterTheRunIsPendingAgain) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  expect_answered_again(first);
}

TEST_P(RepeatedTurns, WhileTheNextTurnRuns) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  expect_answered_again(first);
  end_completed(second);
  EXPECT_TRUE(commit(second).accepted);
}

TEST_P(RepeatedTurns, AfterTheNextTurnIsCommitted) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  ask_task(second, Task("more"));
  commit(second);
  expect_answered_again(first);
  expect_answered_again(second);
}

TEST_P(RepeatedTurns, AfterTheNextTurnWasLost) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  const Execution lost = claim_turn();
  clock_.advance(61s);
  store().sweep(100);
  expect_answered_again(first);
  EXPECT_FALSE(commit(turn(lost)).accepted) << "that one was never committed";
}

TEST_P(RepeatedTurns, AfterTheNextTurnWasGivenBack) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  extend(token_of(claim_turn()), 0ms);
  expect_answered_again(first);
}

TEST_P(RepeatedTurns, AfterTheRunIsClosed) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  end_completed(second);
  commit(second);
  expect_answered_again(first);
  expect_answered_again(second, Status::completed);
}

TEST_P(RepeatedTurns, AfterTheRunIsCancelledAndResumed) {
  const Turn first = first_turn();
  on_workflow(ControlRequest::Action::cancel);
  expect_answered_again(first);
  on_workflow(ControlRequest::Action::resume);
  expect_answered_again(first);
}

TEST_P(RepeatedTurns, ThatFailedTheRunAfterItIsResumed) {
  start();
  Turn failing = turn(claim_turn());
  failing.end = Turn::Failed{{"E", "m"}};
  EXPECT_EQ(commit(failing).status, Status::failed);
  on_workflow(ControlRequest::Action::resume);
  expect_answered_again(failing, Status::failed);
}

TEST_P(RepeatedTurns, ThatWasStuck) {
  start();
  Turn stuck = turn(claim_turn());
  stuck.end = Turn::Stuck{{"NonDeterminism", "m"}};
  EXPECT_EQ(commit(stuck).status, Status::suspended);
  clock_.advance(2min);
  store().sweep(100);
  claim_turn();
  expect_answered_again(stuck);
}

TEST_P(RepeatedTurns, ThatFollowedAStep) {
  const Execution run = suspended_on_task();
  Turn following_turn = following(run, claim_one());
  ask_task(following_turn, Task("more"));
  ask_until(following_turn, Kind::wait_signal, std::nullopt, "hello");
  EXPECT_TRUE(commit(following_turn).accepted);
  signal("hello", "1");
  claim_turn();
  const TurnOutcome again = commit(following_turn);
  EXPECT_TRUE(again.accepted);
  EXPECT_EQ(again.status, Status::suspended);
  EXPECT_TRUE(again.step->accepted);
}

TEST_P(RepeatedTurns, OfAnotherNamespaceAreLost) {
  Turn first = first_turn();
  complete(token_of(claim_one()));
  claim_turn();
  first.name_space = "tenant";
  EXPECT_FALSE(commit(first).accepted);
}

TEST_P(RepeatedTurns, AreRecognisedOverAsManyTurnsAsPromised) {
  start();
  const Turn first = turn_that_waits();
  for (std::size_t i = 1; i < kRememberedTurns; ++i) next_turn();
  expect_answered_again(first);
  next_turn();
  EXPECT_FALSE(commit(first).accepted);
}

TEST_P(RepeatedTurns, AreNotThoseOfAForkOrOfTheRunThatFollows) {
  const Turn first = first_turn();
  complete(token_of(claim_one()));
  Turn second = turn(claim_turn());
  second.end = Turn::Continued{test_id(7'000'000), "2", hash_input("2")};
  EXPECT_EQ(commit(second).status, Status::completed);
  EXPECT_THAT(find(test_id(7'000'000))->run.committed, IsEmpty());
  expect_answered_again(second, Status::completed);
}

}  // namespace
}  // namespace hapax
