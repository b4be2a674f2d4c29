// What a turn costs: counted in events that are told to the code, and in replays.
#include <gtest/gtest.h>

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

  // Runs it alone, to its end, and gives what the code was told per step.
  double events_per_step(Turns& turns, int steps) {
    SubmitRequest start;
    start.kind = Kind::workflow;
    start.type = "count";
    start.input = parse_json(std::to_string(steps));
    start.idempotency_key = "count-" + std::to_string(steps);
    await<std::vector<SubmitResult>>([&](auto reply) { app_.engine().submit("default", {start}, std::move(reply)); });
    const std::int64_t before = turns.events();
    while (app_.engine().find_workflow("default", *start.idempotency_key)->status != Status::completed) run_one(turns);
    return static_cast<double>(turns.events() - before) / steps;
  }

  AppState app_{open_engine("memory:"), "default"};
  bool follow_ = false;

 private:
  void run_one(Turns& turns) {
    ClaimCall call;
    call.name_space = "default";
    call.queues = {"default"};
    call.workflows = true;
    call.wait = std::chrono::seconds(10);
    auto claims = await<std::vector<Claimed>>([&](auto reply) { app_.engine().claim(call, std::move(reply)); });
    ASSERT_EQ(claims.size(), 1U);
    if (claims[0].execution.kind == Kind::workflow) {
      TurnRequest turn = turns.run(claims[0].execution, claims[0].events);
      ASSERT_TRUE(await<std::vector<TurnOutcome>>([&](auto reply) { app_.engine().commit_turns({turn}, std::move(reply)); }).at(0).accepted);
    } else {
      RunningTask task(std::move(claims[0]));
      const Report report = run_handler(app_.tasks(), task, "default");
      const auto turn = follow_ ? turns.follow(task, report) : std::nullopt;
      if (turn) {
        const TurnOutcome outcome =
            await<std::vector<TurnOutcome>>([&](auto reply) { app_.engine().commit_turns({*turn}, std::move(reply)); }).at(0);
        ASSERT_TRUE(outcome.accepted && outcome.step->accepted);
        return;
      }
      await<std::vector<FinishOutcome>>([&](auto reply) { app_.engine().finish({report}, std::move(reply)); });
    }
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
