// What a turn costs: counted in events that are told to the code, and in replays.
#include <gtest/gtest.h>

#include "core/canonical_json.h"
#include "sdk/attempt.h"
#include "sdk/turns.h"

namespace hapax::detail {
namespace {

class TurnsTest : public ::testing::Test {
 protected:
  TurnsTest() {
    app_.declare("next", DeclaredTask{{}, handler_of([](int n) { return n + 1; })}, nullptr);
    app_.declare("count", DeclaredWorkflow{{}, workflow_of([](Context& ctx, int steps) {
                                             int n = 0;
                                             while (n < steps) n = ctx.run<int>("next", n);
                                             return n;
                                           })},
                 nullptr);
  }

  std::string start(int steps) {
    SubmitRequest request;
    request.kind = Kind::workflow;
    request.type = "count";
    request.input = parse_json(std::to_string(steps));
    request.idempotency_key = "count-" + std::to_string(steps);
    await<std::vector<SubmitResult>>([&](auto reply) { app_.engine().submit("default", {request}, std::move(reply)); });
    return *request.idempotency_key;
  }

  // Runs it alone, to its end, and gives what the code was told per step.
  double events_per_step(Turns& turns, int steps) {
    const std::string id = start(steps);
    const std::int64_t before = turns.events();
    while (app_.engine().find_workflow("default", id)->status != Status::completed) run_one(turns);
    return static_cast<double>(turns.events() - before) / steps;
  }

  Claimed claim(Duration lease = std::chrono::minutes(1)) {
    ClaimCall call;
    call.lease = lease;
    call.worker = "test";
    call.name_space = "default";
    call.queues = {"default"};
    call.workflows = true;
    call.wait = std::chrono::seconds(10);
    auto claims = await<std::vector<Claimed>>([&](auto reply) { app_.engine().claim(call, std::move(reply)); });
    return std::move(claims.at(0));
  }

  void commit(const TurnRequest& turn) {
    const TurnOutcome outcome = await<std::vector<TurnOutcome>>([&](auto reply) {
                                  app_.engine().commit_turns({turn}, std::move(reply));
                                }).at(0);
    ASSERT_TRUE(outcome.accepted);
    ASSERT_TRUE(!outcome.step || outcome.step->accepted);
  }

  AppState app_{open_engine("memory:"), "default"};
  bool follow_ = false;

 private:
  void run_one(Turns& turns) {
    Claimed claimed = claim();
    if (claimed.execution.kind == Kind::workflow) return commit(turns.run(claimed.execution, claimed.events));
    RunningTask task(std::move(claimed));
    const auto tasks = app_.tasks();
    const Report report = run_handler(*declared_for(tasks, task.execution.type), task, "default");
    if (const auto turn = follow_ ? turns.follow(task, report) : std::nullopt) {
      commit(*turn);
      return turns.accepted(*turn);
    }
    await<std::vector<FinishOutcome>>([&](auto reply) { app_.engine().finish({report}, std::move(reply)); });
  }
};

TEST_F(TurnsTest, ALongWorkflowCostsNoMorePerStepThanAShortOne) {
  Turns turns(app_, 10, 256 * 1024);
  const double of_short = events_per_step(turns, 100);
  const double of_long = events_per_step(turns, 1000);
  EXPECT_LE(of_long, 1.5 * of_short);
  EXPECT_EQ(turns.replayed(), 2);  // each began once
  EXPECT_GE(turns.continued(), 1100);
}

TEST_F(TurnsTest, ATurnFollowsTheEndOfItsStep) {
  Turns turns(app_, 10, 256 * 1024);
  follow_ = true;
  events_per_step(turns, 5);
  EXPECT_EQ(turns.replayed(), 1);
  EXPECT_EQ(turns.followed(), 5);
  EXPECT_EQ(app_.engine().find_workflow("default", "count-5")->result, "5");
}

TEST_F(TurnsTest, WhatARunWasToldButIsNotCommittedIsNotUsedByAClaim) {
  Turns turns(app_, 10, 256 * 1024);
  start(3);
  const Claimed first = claim();
  commit(turns.run(first.execution, first.events));
  const RunningTask step(claim());
  const Report guess{step.token, Report::Completed{"70"}, "default"};
  ASSERT_TRUE(turns.follow(step, guess).has_value());

  Report truth = guess;
  truth.outcome = Report::Completed{"1"};
  await<std::vector<FinishOutcome>>([&](auto reply) { app_.engine().finish({truth}, std::move(reply)); });
  const Claimed second = claim();
  const TurnRequest turn = turns.run(second.execution, second.events);
  ASSERT_EQ(turn.commands.size(), 1U);
  EXPECT_EQ(canonical_json(turn.commands[0].start->input), "1");
  EXPECT_EQ(turns.replayed(), 2);
}

TEST_F(TurnsTest, ATurnWhoseWorkerWasLostIsNotAFirstTry) {
  Turns turns(app_, 10, 256 * 1024);
  start(3);
  const Claimed lost = claim(std::chrono::seconds(1));
  EXPECT_TRUE(turns.open(lost.execution, lost.events).is_first_try);
  const Claimed again = claim();
  EXPECT_EQ(again.execution.id, lost.execution.id);
  OpenTurn turn = turns.open(again.execution, again.events);
  EXPECT_FALSE(turn.is_first_try);
  ASSERT_TRUE(turn.lone_step());
  EXPECT_EQ(turn.lone_step()->event.step, 1);
}

TEST_F(TurnsTest, NothingFollowsWhereTheRunIsNotKept) {
  Turns turns(app_, 0, 256 * 1024);
  follow_ = true;
  events_per_step(turns, 3);
  EXPECT_EQ(turns.followed(), 0);
}

TEST_F(TurnsTest, WithoutRoomToKeepRunsEveryTurnIsReplayed) {
  Turns turns(app_, 0, 256 * 1024);
  EXPECT_GT(events_per_step(turns, 50), 20);
  EXPECT_EQ(turns.continued(), 0);
}

TEST_F(TurnsTest, ARunThatMadeRoomForOthersIsReplayed) {
  Turns turns(app_, 1, 256 * 1024);
  events_per_step(turns, 3);
  const std::int64_t before = turns.replayed();
  events_per_step(turns, 4);
  EXPECT_EQ(turns.replayed(), before + 1);
}

}  // namespace
}  // namespace hapax::detail
