// What came of a step is not of the type that the code reads it as: a failure of the step, where the code can meet it.
#include <boost/describe.hpp>

#include "sdk/replayed.h"

namespace hapax::detail {
namespace {

struct Approval {
  std::string by;
  std::vector<Order> orders;
};
BOOST_DESCRIBE_STRUCT(Approval, (), (by, orders))

TEST(BadPayload, OfAResultIsAFailureOfItsStep) {
  auto replay = Replay::of([](Context& ctx) {
    ctx.run("first");
    ctx.run<Approval>("second");
  });
  replay.committed();
  replay.completes(1, std::nullopt);
  replay.committed();
  replay.completes(2, R"({"by":"ada","orders":[{"id":1},{"id":"two"}]})");
  EXPECT_EQ(
      failure_of(replay.turn()),
      "BadPayload: step 2, task 'second': its result does not fit at /orders/1/id: expected a whole number, got a "
      "string");
}

TEST(BadPayload, OfASignalIsOneTooWithATimeOutAndWithout) {
  auto replay = Replay::of([](Context& ctx) { ctx.wait_signal<Approval>("approve"); });
  replay.committed();
  replay.signals(1, "approve", "7");
  EXPECT_EQ(failure_of(replay.turn()),
            "BadPayload: step 1, wait_signal 'approve': its payload does not fit: expected an object, got a number");

  auto timed = Replay::of([](Context& ctx) { ctx.wait_signal<int>("approve", std::chrono::hours(1)); });
  timed.committed();
  timed.signals(1, "approve", R"({"by":"ada"})");
  EXPECT_EQ(
      failure_of(timed.turn()),
      "BadPayload: step 1, wait_signal 'approve': its payload does not fit: expected a whole number, got an object");
}

TEST(BadPayload, OfAChildAndOfARecordedValueToo) {
  auto replay = Replay::of([](Context& ctx) { ctx.run_workflow<int>("child"); });
  replay.committed();
  replay.completes(1, "\"text\"");
  EXPECT_EQ(failure_of(replay.turn()),
            "BadPayload: step 1, child 'child': its result does not fit: expected a whole number, got a string");

  auto changed = Replay::of([](Context& ctx) {
    ctx.side_effect("pick", [] { return std::string("text"); });
    ctx.run("a");
  });
  changed.committed();
  changed.change_code(workflow_of([](Context& ctx) {
    try {
      ctx.side_effect("pick", [] { return 1; });
    } catch (const StepFailed&) {
      ctx.run("a");
      throw;
    }
  }));
  changed.completes(2, std::nullopt);
  EXPECT_EQ(failure_of(changed.turn()),
            "BadPayload: step 1, side_effect 'pick': its recorded value does not fit: expected a whole number, got a "
            "string");
}

TEST(BadPayload, IsMetByTheCompensation) {
  auto replay = Replay::of([](Context& ctx) {
    try {
      ctx.all(std::vector{ctx.start<Approval>("ask")});
    } catch (const StepFailed& failure) {
      EXPECT_EQ(failure.code(), "BadPayload");
      EXPECT_EQ(failure.status(), "failed");
      EXPECT_EQ(failure.type(), "InvalidJson");
      EXPECT_EQ(failure.step(), 1);
      EXPECT_EQ(failure.name(), "ask");
      EXPECT_EQ(failure.pointer(), "/by");
      EXPECT_EQ(failure.message(), "expected a string, got a number");
      ctx.run("refund");
      throw;
    }
  });
  replay.committed();
  replay.completes(1, R"({"by":7})");
  const TurnRequest compensation = replay.committed();
  ASSERT_EQ(compensation.commands.size(), 1U);
  EXPECT_EQ(compensation.commands[0].event.name, "refund");
  replay.completes(2, std::nullopt);
  replay.start_over();
  EXPECT_EQ(failure_of(replay.turn()),
            "BadPayload: step 1, task 'ask': its result does not fit at /by: expected a "
            "string, got a number");
}

TEST(StepFailure, OfAnyKindSaysItsStep) {
  auto replay = Replay::of([](Context& ctx) {
    ctx.run("first");
    try {
      ctx.run("second");
    } catch (const StepFailed& failure) {
      EXPECT_EQ(failure.step(), 2);
      EXPECT_EQ(failure.name(), "second");
      EXPECT_EQ(failure.pointer(), "");
    }
    try {
      ctx.side_effect("pick", []() -> int { throw std::runtime_error("no"); });
    } catch (const StepFailed& failure) {
      EXPECT_EQ(failure.step(), 3);
      EXPECT_EQ(failure.name(), "pick");
    }
  });
  replay.committed();
  replay.completes(1, std::nullopt);
  replay.committed();
  replay.fails(2, Status::failed, AttemptError{"E", "m"});
  EXPECT_EQ(result_of(replay.turn()), "nothing");
}

}  // namespace
}  // namespace hapax::detail
