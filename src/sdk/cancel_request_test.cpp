// Where the code of a workflow is told of a requested cancel: the same place in the first run and in every replay.
#include "hapax/saga.h"
#include "sdk/replayed.h"

namespace hapax::detail {
namespace {

using namespace std::chrono_literals;

Event request() {
  Event event;
  event.kind = Event::Kind::cancel_requested;
  event.value = "\"by the customer\"";
  return event;
}

std::vector<std::string> names_of(const TurnRequest& turn) {
  std::vector<std::string> names;
  for (const auto& command : turn.commands) names.push_back(command.event.name);
  return names;
}

using Names = std::vector<std::string>;
const std::string kTold = "hapax.cancel_requested";

// Says where it was told.
std::string told_at(const std::function<void(std::string&)>& code) {
  std::string at = "the beginning";
  try {
    code(at);
  } catch (const CancelRequested& cancel) {
    return at + " " + cancel.reason_json();
  }
  return "not told";
}

Replay steps() {
  return Replay::of([](Context& ctx) {
    return told_at([&](std::string& at) {
      ctx.run("charge");
      at = "charged";
      ctx.publish("charged", true);
      ctx.run("ship");
      at = "shipped";
      ctx.sleep(1h);
      at = "slept";
    });
  });
}

TEST(RequestedCancels, AreToldBeforeTheFirstStep) {
  auto replay = steps();
  replay.add(request());
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(names_of(turn), Names{kTold});
  EXPECT_EQ(result_of(turn), R"("the beginning \"by the customer\"")");
}

TEST(RequestedCancels, LetTheTaskThatRunsEndAndAreToldBeforeTheNextStep) {
  auto replay = steps();
  replay.committed();
  replay.add(request());
  EXPECT_TRUE(suspended(replay.committed()));
  replay.completes(1, std::nullopt);
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(names_of(turn), (Names{"charged", kTold}));
  EXPECT_EQ(result_of(turn), R"("charged \"by the customer\"")");
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), result_of(turn));
}

// The turn that asked for the second step did not know of it yet.
TEST(RequestedCancels, LeaveWhatWasAskedForBeforeTheyWereKnown) {
  for (const bool kept : {true, false}) {
    auto replay = steps();
    replay.committed();
    replay.completes(1, std::nullopt);
    const TurnRequest unaware = replay.turn();
    replay.add(request());
    for (const auto& command : unaware.commands) replay.add(command.event);
    replay.completes(3, std::nullopt);
    if (!kept) replay.start_over();
    const TurnRequest turn = replay.committed();
    EXPECT_EQ(names_of(turn), Names{kTold});
    EXPECT_EQ(result_of(turn), R"("shipped \"by the customer\"")");
    replay.start_over();
    EXPECT_EQ(result_of(replay.turn()), result_of(turn));
  }
}

std::string ship_after_signal(Context& ctx) {
  return told_at([&](std::string& at) {
    ctx.wait_signal("go");
    at = "gone";
    ctx.run("ship");
  });
}

// Its outcome came between the turn and its commit.
TEST(RequestedCancels, AreToldAtTheWaitAgainThatHasAnOutcomeByNow) {
  auto replay = Replay::of(ship_after_signal);
  replay.committed();
  replay.add(request());
  const TurnRequest turn = replay.turn();
  EXPECT_EQ(result_of(turn), R"("the beginning \"by the customer\"")");
  replay.signals(1, "go", "1");
  for (const auto& command : turn.commands) replay.add(command.event);
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), result_of(turn));
}

TEST(RequestedCancels, ComeAfterTheOutcomesThatTheTurnBrought) {
  auto replay = Replay::of(ship_after_signal);
  replay.committed();
  replay.add(request());
  replay.signals(1, "go", "1");
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(result_of(turn), R"("gone \"by the customer\"")");
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), result_of(turn));
}

TEST(RequestedCancels, AreToldBeforeTheRunContinuesAsNew) {
  auto replay = Replay::of([](Context& ctx) { return told_at([&](std::string&) { ctx.continue_as_new(1); }); });
  replay.add(request());
  EXPECT_EQ(result_of(replay.committed()), R"("the beginning \"by the customer\"")");
}

TEST(RequestedCancels, AreToldInAForkWhichHasNoRequestOfItsOwn) {
  auto replay = steps();
  replay.add(request());
  replay.committed();
  std::erase_if(replay.history, [](const Event& event) { return event.kind == Event::Kind::cancel_requested; });
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), R"("the beginning \"by the customer\"")");
}

TEST(RequestedCancels, LetTheHandlerOfAnUpdateEnd) {
  auto replay = Replay::of([](Context& ctx) {
    return told_at([&](std::string& at) {
      ctx.on("more", [&](int) { return ctx.run<int>("reserve"); });
      ctx.wait_signal("go");
      at = "gone";
    });
  });
  replay.committed();
  replay.signals(1, "hapax.update:more", R"({"payload":3,"request_key":"k"})");
  replay.add(request());
  EXPECT_EQ(names_of(replay.committed()), Names{"reserve"});
  replay.completes(3, "7");
  const TurnRequest turn = replay.committed();
  EXPECT_EQ(names_of(turn), (Names{"hapax.answer:k", "hapax.update:more", kTold}));
  EXPECT_EQ(result_of(turn), R"("the beginning \"by the customer\"")");
  replay.start_over();
  EXPECT_EQ(result_of(replay.turn()), result_of(turn));
}

}  // namespace
}  // namespace hapax::detail
