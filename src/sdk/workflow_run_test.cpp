// The replayer by itself: events in, commands out, no engine.
#include <gtest/gtest.h>

#include "core/canonical_json.h"
#include "sdk/replayed.h"

namespace hapax::detail {
namespace {

using namespace std::chrono_literals;
using Kind = Event::Kind;

TEST(Commands, ATaskIsSubmittedAsItsFunctionWasDeclared) {
  auto replay = Replay::of([](Context& ctx) { return ctx.run(charge, Order{7}, key("payment-7")); });
  const TurnRequest turn = replay.committed();
  ASSERT_EQ(turn.commands.size(), 1U);
  const auto& [event, start, begun] = turn.commands[0];
  EXPECT_EQ(event.kind, Kind::task);
  EXPECT_EQ(event.step, 1);
  EXPECT_EQ(event.name, "charge");
  ASSERT_TRUE(start);
  EXPECT_EQ(start->kind, hapax::Kind::task);
  EXPECT_EQ(start->type, "charge");
  EXPECT_EQ(start->queue, "payments");
  EXPECT_EQ(start->idempotency_key, "payment-7");
  EXPECT_EQ(canonical_json(start->input), R"({"id":7})");
  EXPECT_FALSE(begun);
  EXPECT_TRUE(suspended(turn));

  replay.completes(1, R"("charged 7")");
  EXPECT_EQ(result_of(replay.turn()), R"("charged 7")");
}

TEST(Commands, WhatTheHistoryHasIsNotAskedForAgain) {
  auto replay = Replay::of([](Context& ctx) {
    ctx.run("a");
    ctx.run("b");
    return 1;
  });
  replay.committed();
  replay.completes(1, std::nullopt);
  EXPECT_EQ(replay.committed().commands.size(), 1U);
  replay.completes(2, std::nullopt);
  replay.start_over();
  const TurnRequest turn = replay.turn();
  EXPECT_TRUE(turn.commands.empty());
  EXPECT_EQ(turn.seen, 4);
  EXPECT_EQ(result_of(turn), "1");
}

TEST(Commands, ASleepEndsSoLongAfterTheTurnBegan) {
  auto replay = Replay::of([](Context& ctx) { ctx.sleep(24h); });
  const TurnRequest turn = replay.committed();
  ASSERT_EQ(turn.commands.size(), 1U);
  EXPECT_EQ(turn.commands[0].event.kind, Kind::sleep);
  EXPECT_EQ(turn.commands[0].event.until, kNow + 24h);
  EXPECT_TRUE(suspended(replay.turn()));
  replay.fires(1);
  EXPECT_EQ(result_of(replay.turn()), "nothing");
}

TEST(Commands, SleepUntilTakesTheTimeItIsTold) {
  auto replay = Replay::of([](Context& ctx) { ctx.sleep_until(kNow + 90s); });
  EXPECT_EQ(replay.turn().commands.at(0).event.until, kNow + 90s);
}

TEST(Commands, ASignalBringsItsValue) {
  auto replay = Replay::of([](Context& ctx) { return ctx.wait_signal<Order>("approve").id; });
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(turn.commands.at(0).event.kind, Kind::wait_signal);
  EXPECT_EQ(turn.commands.at(0).event.name, "approve");
  EXPECT_FALSE(turn.commands.at(0).event.until);
  replay.signals(1, "approve", R"({"id":3})");
  EXPECT_EQ(result_of(replay.turn()), "3");
}

TEST(Commands, AWaitForASignalMayTimeOut) {
  auto replay = Replay::of([](Context& ctx) { return ctx.wait_signal<int>("approve", 1h).value_or(-1); });
  EXPECT_EQ(replay.committed().commands.at(0).event.until, kNow + 1h);
  replay.fires(1);
  EXPECT_EQ(result_of(replay.turn()), "-1");
}

TEST(Commands, AChildHasAnIdOfItsOwnOrOneThatIsDerived) {
  auto replay = Replay::of([](Context& ctx) {
    const auto given = ctx.start_workflow(twice, 4, key("child-4"));
    const auto derived = ctx.start_workflow<int>("other", 5, {.queue = "elsewhere"});
    return given.get() + derived.get();
  });
  const TurnRequest turn = replay.committed();
  ASSERT_EQ(turn.commands.size(), 2U);
  EXPECT_EQ(turn.commands[0].event.kind, Kind::child);
  EXPECT_EQ(turn.commands[0].event.name, "twice");
  EXPECT_EQ(turn.commands[0].event.key, "child-4");
  EXPECT_EQ(turn.commands[0].start->kind, hapax::Kind::workflow);
  EXPECT_EQ(turn.commands[0].start->idempotency_key, "child-4");
  EXPECT_EQ(turn.commands[0].start->queue, "children");
  EXPECT_EQ(turn.commands[1].event.key, "child-019bf2d4-0000-7000-8000-000000000001:2");
  EXPECT_EQ(turn.commands[1].start->idempotency_key, turn.commands[1].event.key);
  replay.completes(2, "10");
  replay.completes(1, "8");
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), "18");
}

TEST(Commands, SideEffectsAreRecordedAndReplayed) {
  int calls = 0;
  auto replay = Replay::of([&](Context& ctx) {
    const auto now = ctx.now();
    const auto random = ctx.random();
    const auto uuid = ctx.uuid();
    const auto own = ctx.side_effect("count", [&] { return Order{++calls}; });
    ctx.run("wait");
    return std::to_string(std::chrono::duration_cast<Milliseconds>(now.time_since_epoch()).count()) + " " +
           std::to_string(random) + " " + uuid + " " + std::to_string(own.id);
  });
  const TurnRequest turn = replay.committed();
  ASSERT_EQ(turn.commands.size(), 5U);
  EXPECT_EQ(turn.commands[0].event.value, R"("2026-01-01T00:00:00.000Z")");
  EXPECT_EQ(turn.commands[2].event.value->size(), 38U);
  EXPECT_EQ(turn.commands[3].event.name, "count");
  EXPECT_EQ(turn.commands[3].event.value, R"({"id":1})");
  replay.completes(5, std::nullopt);
  replay.now += 1h;
  const std::string live = result_of(replay.turn());
  EXPECT_TRUE(live.starts_with("\"1767225600000 ")) << live;
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), live);
  EXPECT_EQ(calls, 1);
}

TEST(Commands, ASideEffectMustNotUseTheContext) {
  auto replay = Replay::of([](Context& ctx) { return ctx.side_effect("bad", [&] { return ctx.random(); }); });
  const std::string failure = failure_of(replay.turn());
  EXPECT_EQ(failure, "StepFailed: the side effect threw Error: a side effect must not use the Context");
}

TEST(Commands, WhatASideEffectThrowsIsThrownAgainAtEveryReplay) {
  int calls = 0;
  auto replay = Replay::of([&](Context& ctx) {
    std::string caught;
    try {
      ctx.side_effect("risky", [&]() -> int { throw std::runtime_error(std::to_string(++calls)); });
    } catch (const StepFailed& error) {
      caught = error.type() + " " + error.message();
    }
    ctx.sleep(1h);
    return caught;
  });
  replay.committed();
  replay.start_over();
  replay.fires(2);
  EXPECT_EQ(result_of(replay.turn()), "\"std::runtime_error 1\"");
}

TEST(Commands, ContinueAsNewEndsTheRunWithTheNextInput) {
  bool unwound = false;
  auto replay = Replay::of([&](Context& ctx) {
    const std::shared_ptr<void> guard(nullptr, [&](void*) { unwound = true; });
    ctx.continue_as_new(Order{8});
  });
  const TurnRequest turn = replay.turn();
  const auto* continued = std::get_if<TurnRequest::Continued>(&turn.end);
  ASSERT_TRUE(continued);
  EXPECT_EQ(canonical_json(continued->input), R"({"id":8})");
  replay.start_over();
  EXPECT_TRUE(unwound);
}

TEST(Commands, AnExceptionFailsTheWorkflowWithItsType) {
  auto replay = Replay::of([](Context&) { throw std::out_of_range("too far"); });
  EXPECT_EQ(failure_of(replay.turn()), "std::out_of_range: too far");
}

TEST(Commands, InputThatDoesNotFitFailsTheWorkflow) {
  auto replay = Replay::of([](Context&, const Order&) {});
  EXPECT_EQ(failure_of(replay.turn()), "Error: expected an object, got null");
}

TEST(Commands, TheContextTellsWhoAndWhetherItIsReplayed) {
  std::vector<bool> replaying;
  auto replay = Replay::of([&](Context& ctx) {
    replaying.push_back(ctx.is_replaying());
    ctx.run("a");
    replaying.push_back(ctx.is_replaying());
    return ctx.workflow_id() + " " + ctx.run_id();
  });
  replay.committed();
  replay.completes(1, std::nullopt);
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), R"("order-1 019bf2d4-0000-7000-8000-000000000001")");
  EXPECT_EQ(replaying, (std::vector<bool>{false, true, false}));
}

TEST(Failures, AStepThatFailedThrowsWhatItFailedWith) {
  auto replay = Replay::of([](Context& ctx) -> std::string {
    try {
      ctx.run(charge, Order{1});
    } catch (const StepFailed& error) {
      return error.code() + "|" + error.status() + "|" + error.type() + "|" + error.message() + "|" + error.what();
    }
    return "no";
  });
  replay.committed();
  replay.fails(1, Status::failed, AttemptError{"Declined", "no money"});
  EXPECT_EQ(result_of(replay.turn()),
            R"("TaskFailed|failed|Declined|no money|task 'charge' failed: Declined: no money")");
}

TEST(Failures, CancelledAndTimedOutStepsSaySo) {
  auto replay = Replay::of([](Context& ctx) {
    const auto task = ctx.start("a");
    const auto child = ctx.start_workflow("b");
    std::string said;
    for (const auto& step : {task, child}) {
      try {
        step.get();
      } catch (const StepFailed& error) {
        said += error.code() + ": " + error.what() + "; ";
      }
    }
    return said;
  });
  replay.committed();
  replay.fails(1, Status::timed_out, AttemptError{"AttemptTimeout", "too long"});
  replay.fails(2, Status::cancelled, std::nullopt);
  EXPECT_EQ(
      result_of(replay.turn()),
      R"("TaskTimedOut: task 'a' timed out: AttemptTimeout: too long; WorkflowCancelled: child 'b' was cancelled; ")");
}

TEST(Failures, CompensationRunsInACatchBlockAcrossTurns) {
  auto replay = Replay::of([](Context& ctx) -> std::string {
    try {
      ctx.run("reserve");
    } catch (const StepFailed& error) {
      ctx.run("refund");  // suspends while the exception is being handled
      try {
        ctx.run("tell");
      } catch (const StepFailed&) {
        ctx.sleep(1h);
      }
      return error.type();
    }
    return "no";
  });
  // Another one that is in the middle of its own handler, on the same thread.
  auto other = Replay::of([](Context& ctx) -> std::string {
    try {
      throw std::runtime_error("mine");
    } catch (const std::exception& error) {
      ctx.run("a");
      return error.what();
    }
  });
  replay.committed();
  replay.fails(1, Status::failed, AttemptError{"OutOfStock", ""});
  replay.committed();
  other.committed();
  replay.completes(2, std::nullopt);
  replay.committed();
  replay.fails(3, Status::failed, AttemptError{"Mail", ""});
  replay.committed();
  other.completes(1, std::nullopt);
  EXPECT_EQ(result_of(other.turn()), R"("mine")");
  replay.fires(4);
  EXPECT_EQ(result_of(replay.turn()), R"("OutOfStock")");
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(All, GivesResultsInTheOrderOfTheArguments) {
  auto replay = Replay::of([](Context& ctx) {
    std::vector<Future<int>> futures;
    for (int i = 0; i < 3; ++i) futures.push_back(ctx.start<int>("n", i));
    return ctx.all(futures);
  });
  EXPECT_EQ(replay.committed().commands.size(), 3U);
  replay.completes(3, "30");
  replay.completes(1, "10");
  EXPECT_TRUE(suspended(replay.turn()));
  replay.completes(2, "20");
  EXPECT_EQ(result_of(replay.turn()), "[10,20,30]");
}

TEST(All, TakesFuturesOfDifferentTypes) {
  auto replay = Replay::of([](Context& ctx) {
    const auto first = ctx.start(charge, Order{1});
    const auto second = ctx.start_sleep(1s);
    const auto third = ctx.start<int>("n");
    const auto [text, nothing, number] = ctx.all(first, second, third);
    return text + std::to_string(number) + std::to_string(nothing == std::monostate());
  });
  replay.committed();
  replay.completes(1, R"("a")");
  replay.completes(3, "5");
  replay.fires(2);
  EXPECT_EQ(result_of(replay.turn()), R"("a51")");
}

TEST(All, WaitsForTheRestBeforeItThrowsTheFirstFailureInOrder) {
  auto replay = Replay::of(
      [](Context& ctx) { return ctx.all(std::vector{ctx.start<int>("a"), ctx.start<int>("b"), ctx.start<int>("c")}); });
  replay.committed();
  replay.fails(3, Status::failed, AttemptError{"Third", ""});
  replay.fails(2, Status::failed, AttemptError{"Second", ""});
  EXPECT_TRUE(suspended(replay.turn()));
  replay.completes(1, "1");
  EXPECT_EQ(failure_of(replay.turn()), "StepFailed: task 'b' failed: Second: ");
}

TEST(Any, TakesWhatCameFirstInTheHistoryLiveAndReplayed) {
  auto replay = Replay::of([](Context& ctx) {
    const auto a = ctx.start<int>("a"), b = ctx.start<int>("b");
    const auto timer = ctx.start_sleep(1h);
    const std::size_t first = ctx.any(a, b, timer);
    ctx.run("after");
    return first;
  });
  replay.committed();
  EXPECT_TRUE(suspended(replay.turn()));
  replay.completes(2, "2");
  replay.completes(1, "1");
  replay.committed();
  replay.fires(3);
  replay.completes(4, std::nullopt);
  EXPECT_EQ(result_of(replay.turn()), "1");
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), "1");
}

TEST(Any, OfNothingIsAnError) {
  auto replay = Replay::of([](Context& ctx) { return ctx.any(std::vector<Future<int>>()); });
  EXPECT_EQ(failure_of(replay.turn()), "Error: any() of no futures would wait for ever");
}

TEST(Version, IsRecordedAndStays) {
  std::int32_t current = 2;
  auto replay = Replay::of([&](Context& ctx) {
    const auto version = ctx.version("change", current);
    ctx.run("a");
    return version;
  });
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(turn.commands.at(0).event.kind, Kind::version);
  EXPECT_EQ(turn.commands.at(0).event.value, "2");
  current = 3;
  replay.completes(2, std::nullopt);
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), "2");
}

TEST(Version, IsZeroForAWorkflowThatPassedHereBefore) {
  auto replay = Replay::of([](Context& ctx) {
    ctx.run("old");
    ctx.run("last");
  });
  replay.committed();
  replay.change_code(workflow_of([](Context& ctx) {
    const auto first = ctx.version("change");
    ctx.run(first == 0 ? "old" : "new");
    const auto second = ctx.version("change");  // not passed before
    ctx.run(second == 0 ? "last" : "newest");
    return 10 * first + second;
  }));
  EXPECT_TRUE(suspended(replay.committed()));
  replay.completes(1, std::nullopt);
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(turn.commands.at(0).event.kind, Kind::version);
  EXPECT_EQ(turn.commands.at(1).event.name, "newest");
  replay.completes(3, std::nullopt);
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), "1");
}

TEST(LiveRun, IsOfNoUseWhenAnotherTurnWasCommittedInItsPlace) {
  auto replay = Replay::of([](Context& ctx) {
    ctx.random();
    ctx.run("a");
  });
  const TurnRequest lost = replay.turn();
  Event committed = lost.commands.at(0).event;
  committed.value = "42";
  replay.add(committed);
  replay.add(lost.commands.at(1).event);
  EXPECT_FALSE(replay.run().learn(replay.history));
}

TEST(LiveRun, IsOfNoUseWhenItsTurnWasNotCommitted) {
  auto replay = Replay::of([](Context& ctx) { ctx.run("a"); });
  replay.turn();
  EXPECT_FALSE(replay.run().learn(replay.history));
}

TEST(LiveRun, GoesOnFromAStepWhoseEndIsNotCommittedYet) {
  auto replay = Replay::of([](Context& ctx) {
    const int a = ctx.run<int>("a");
    return a + ctx.run<int>("b");
  });
  replay.committed();
  EXPECT_TRUE(replay.run().waits_only_for(1));
  EXPECT_FALSE(replay.run().waits_only_for(2));
  replay.run().learn_completed(1, "5");
  EXPECT_FALSE(replay.run().waits_only_for(1));
  const TurnRequest turn = replay.run().advance(kNow);
  EXPECT_EQ(turn.seen, 2);
  ASSERT_EQ(turn.commands.size(), 1U);
  EXPECT_EQ(turn.commands[0].event.name, "b");

  // What is then committed is what it knows.
  replay.completes(1, "5");
  replay.add(turn.commands[0].event);
  EXPECT_TRUE(replay.run().waits_only_for(2));
  replay.completes(2, "6");
  EXPECT_EQ(result_of(replay.turn()), "11");
}

TEST(LiveRun, DoesNotWaitForOneStepAloneWhileOthersAreUnderWay) {
  auto replay = Replay::of([](Context& ctx) {
    auto a = ctx.start<int>("a"), b = ctx.start<int>("b");
    return a.get() + b.get();
  });
  replay.committed();
  EXPECT_FALSE(replay.run().waits_only_for(1));
  replay.completes(1, "1");
  replay.turn();
  EXPECT_TRUE(replay.run().waits_only_for(2));
  replay.start_over();
  replay.turn();
  EXPECT_TRUE(replay.run().waits_only_for(2));
}

TEST(LiveRun, IsUnwoundWhenItIsDroppedEvenIfTheCodeCatchesEverything) {
  int unwound = 0, refused = 0;
  {
    auto replay = Replay::of([&](Context& ctx) {
      const std::shared_ptr<void> guard(nullptr, [&](void*) { ++unwound; });
      try {
        ctx.run("a");
      } catch (...) {
        try {
          ctx.start("b");
        } catch (...) {
          ++refused;
        }
      }
    });
    EXPECT_TRUE(suspended(replay.turn()));
  }
  EXPECT_EQ(unwound, 1);
  EXPECT_EQ(refused, 1);
}

TEST(LiveRun, ThatNeverBeganIsDroppedQuietly) {
  bool ran = false;
  {
    auto replay = Replay::of([&](Context&) { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace hapax::detail
