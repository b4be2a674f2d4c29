// What a saga undoes, when, and in which order.
#include "hapax/saga.h"

#include "sdk/replayed.h"

namespace hapax::detail {
namespace {

std::vector<std::string> names_of(const TurnRequest& turn) {
  std::vector<std::string> names;
  for (const auto& command : turn.commands) names.push_back(command.event.name);
  return names;
}

// Commits turns, and completes each undo, until the workflow ends. Starts over before each turn: as another worker.
std::pair<std::vector<std::string>, TurnRequest> undone(Replay& replay, std::int32_t step) {
  std::vector<std::string> names;
  for (;;) {
    replay.start_over();
    TurnRequest turn = replay.committed();
    for (const std::string& name : names_of(turn)) {
      names.push_back(name);
      replay.completes(step++, std::nullopt);
    }
    if (!suspended(turn)) return {names, std::move(turn)};
  }
}

void order(Context& ctx) {
  Saga saga(ctx);
  ctx.run("charge");
  saga.undo("refund", 1);
  ctx.run("reserve");
  saga.undo("release", 2);
  ctx.run("ship");
}

TEST(Saga, UndoesInReverseWhenAStepFails) {
  auto replay = Replay::of(order);
  for (int step = 1; step <= 2; ++step) {
    replay.committed();
    replay.completes(step, std::nullopt);
  }
  replay.committed();
  replay.fails(3, Status::failed, AttemptError{"Lost", "no such street"});
  const auto [names, turn] = undone(replay, 4);
  EXPECT_EQ(names, (std::vector<std::string>{"release", "refund"}));
  EXPECT_EQ(failure_of(turn), "StepFailed: task 'ship' failed: Lost: no such street");
}

TEST(Saga, UndoesOnlyWhatWasDone) {
  auto replay = Replay::of(order);
  replay.committed();
  replay.completes(1, std::nullopt);
  replay.committed();
  replay.fails(2, Status::failed, AttemptError{"E", "m"});
  const auto [names, turn] = undone(replay, 3);
  EXPECT_EQ(names, (std::vector<std::string>{"refund"}));
}

TEST(Saga, UndoesNothingWhenAllGoesWell) {
  auto replay = Replay::of(order);
  for (int step = 1; step <= 3; ++step) {
    replay.committed();
    replay.completes(step, std::nullopt);
  }
  EXPECT_EQ(result_of(replay.turn()), "nothing");
}

TEST(Saga, UndoesForBadPayloadsAndForExceptionsOfTheProgram) {
  auto bad = Replay::of([](Context& ctx) {
    Saga saga(ctx);
    saga.undo("refund", 1);
    ctx.wait(Signal<int>{"go"});
  });
  bad.committed();
  bad.signals(1, "go", "\"text\"");
  auto [names, turn] = undone(bad, 2);
  EXPECT_EQ(names, (std::vector<std::string>{"refund"}));
  EXPECT_TRUE(failure_of(turn).starts_with("BadPayload: step 1, wait_signal 'go'")) << failure_of(turn);

  auto own = Replay::of([](Context& ctx) {
    Saga saga(ctx);
    saga.undo("refund", 1);
    throw WorkflowFailed("nobody packed it");
  });
  std::tie(names, turn) = undone(own, 1);
  EXPECT_EQ(names, (std::vector<std::string>{"refund"}));
  EXPECT_EQ(failure_of(turn), "WorkflowFailed: nobody packed it");
}

TEST(Saga, UndoesBeforeTheCodeThatCaughtTheFailureAsksForMore) {
  auto replay = Replay::of([](Context& ctx) {
    try {
      Saga saga(ctx);
      saga.undo("refund", 1);
      ctx.run("ship");
    } catch (const StepFailed&) {
      ctx.run("apologise");
      return 7;
    }
    return 0;
  });
  replay.committed();
  replay.fails(1, Status::failed, AttemptError{"E", "m"});
  const auto [names, turn] = undone(replay, 2);
  EXPECT_EQ(names, (std::vector<std::string>{"refund", "apologise"}));
  EXPECT_EQ(result_of(turn), "7");
}

TEST(Saga, UndoesForARequestedCancelAndIsNotInterruptedByOne) {
  auto replay = Replay::of([](Context& ctx) {
    Saga saga(ctx);
    ctx.run("charge");
    saga.undo("refund", 1);
    ctx.run("reserve");
    saga.undo("release", 2);
    ctx.sleep(std::chrono::hours(1));
  });
  for (int step = 1; step <= 2; ++step) {
    replay.committed();
    replay.completes(step, std::nullopt);
  }
  replay.committed();
  Event cancel;
  cancel.kind = Event::Kind::cancel_requested;
  cancel.value = "\"by the customer\"";
  replay.add(cancel);
  const TurnRequest told = replay.committed();
  ASSERT_EQ(told.commands.size(), 2U);
  EXPECT_EQ(told.commands[1].event.name, "release");
  replay.completes(5, std::nullopt);
  const auto [names, turn] = undone(replay, 6);
  EXPECT_EQ(names, (std::vector<std::string>{"refund"}));
  EXPECT_EQ(failure_of(turn), "CancelRequested: its cancellation was requested: \"by the customer\"");
}

TEST(Saga, AnUndoThatFailsDoesNotKeepTheOthersFromRunningAndIsTold) {
  auto replay = Replay::of(order);
  for (int step = 1; step <= 2; ++step) {
    replay.committed();
    replay.completes(step, std::nullopt);
  }
  replay.committed();
  replay.fails(3, Status::failed, AttemptError{"Lost", "no such street"});
  EXPECT_EQ(names_of(replay.committed()), (std::vector<std::string>{"release"}));
  replay.fails(4, Status::failed, AttemptError{"E", "shelf is gone"});
  EXPECT_EQ(names_of(replay.committed()), (std::vector<std::string>{"refund"}));
  replay.completes(5, std::nullopt);
  replay.start_over();
  EXPECT_EQ(failure_of(replay.turn()),
            "StepFailed: task 'ship' failed: Lost: no such street; undoing it failed, too: task 'release' failed: E: "
            "shelf is gone");
}

TEST(Saga, CanBeUndoneByHandAndForgotten) {
  auto replay = Replay::of([](Context& ctx) {
    Saga saga(ctx);
    saga.undo("refund", 1);
    saga.undo_all();
    saga.undo("release", 2);
    saga.forget();
    throw WorkflowFailed("enough");
  });
  const auto [names, turn] = undone(replay, 1);
  EXPECT_EQ(names, (std::vector<std::string>{"refund"}));
}

}  // namespace
}  // namespace hapax::detail
