#include "wire/read_request.h"

#include <gtest/gtest.h>

#include "core/field.h"
#include "wire/write_request.h"

namespace hapax::wire {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

TurnRequest::Command command(std::int32_t step, Event::Kind kind, std::string name = "") {
  TurnRequest::Command command;
  command.event.step = step;
  command.event.kind = kind;
  command.event.name = std::move(name);
  return command;
}

TurnRequest::Command start(std::int32_t step, Kind kind, std::optional<std::string> key) {
  auto command = wire::command(step, kind == Kind::workflow ? Event::Kind::child : Event::Kind::task, "charge");
  command.start.emplace();
  command.start->kind = kind;
  command.start->type = "charge";
  command.start->input = parse_json(R"({"a":9007199254740993})");
  command.start->idempotency_key = std::move(key);
  command.start->queue = "payments";
  return command;
}

TurnRequest every_command() {
  TurnRequest turn;
  turn.token.attempt = 3;
  turn.seen = 17;
  turn.commands = {start(4, Kind::task, "k"),
                   start(5, Kind::workflow, "child"),
                   start(6, Kind::workflow, std::nullopt),
                   command(7, Event::Kind::sleep),
                   command(8, Event::Kind::wait_signal, "approve"),
                   command(9, Event::Kind::wait_signal, "approve"),
                   command(10, Event::Kind::side_effect, "now"),
                   command(11, Event::Kind::version, "new-tax")};
  turn.commands[3].event.until = kNoon;
  turn.commands[5].event.until = kNoon + 1h;
  turn.commands[6].event.value = "null";
  turn.commands[7].event.value = "2";
  return turn;
}

void expect_arrives(const TurnRequest& turn) {
  const std::string text = array_body("turns", std::vector{write_turn(turn)});
  auto items = read_turns(parse_json(text));
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].lease, turn.token.to_string());
  TurnRequest read = std::move(items[0].turn);
  read.token = turn.token;
  EXPECT_EQ(array_body("turns", std::vector{write_turn(read)}), text);
  ASSERT_EQ(read.commands.size(), turn.commands.size());
  for (std::size_t i = 0; i < turn.commands.size(); ++i) EXPECT_EQ(read.commands[i].event, turn.commands[i].event) << i;
}

TEST(ReadTurn, EveryCommandAndEveryEndArrives) {
  TurnRequest turn = every_command();
  expect_arrives(turn);
  for (TurnRequest::Command& command : turn.commands) {
    if (command.event.kind != Event::Kind::task) continue;
    command.within_turn = TurnRequest::WithinTurn{std::nullopt, {LeaseSecret::generate(), "w", 60s}};
    if (command.event.step % 2 == 0) command.within_turn->begun.completed = Report::Completed{"8"};
  }
  expect_arrives(turn);
  turn.end = Turn::Unfinished{};
  expect_arrives(turn);
  turn.end = Turn::Completed{std::nullopt};
  expect_arrives(turn);
  turn.end = Turn::Completed{"null"};
  expect_arrives(turn);
  turn.end = Turn::Failed{{"Declined", "no funds"}};
  expect_arrives(turn);
  turn.commands.clear();
  turn.end = Turn::Stuck{{"NonDeterminism", "step 1"}};
  expect_arrives(turn);
  turn.end = TurnRequest::Continued{parse_json("[1,2]")};
  expect_arrives(turn);
}

std::string pointer_of(const char* text) {
  try {
    read_turns(parse_json(text));
  } catch (const InvalidField& error) {
    return error.pointer();
  }
  return "nothing was thrown";
}

TEST(ReadTurn, ErrorsHaveAPointer) {
  EXPECT_EQ(pointer_of("{}"), "/turns");
  EXPECT_EQ(pointer_of(R"({"turns":[]})"), "/turns");
  EXPECT_EQ(pointer_of(R"({"turns":[],"colour":1})"), "/colour");
  EXPECT_EQ(pointer_of(R"({"turns":[{"lease":"x","seen":-1,"end":{}}]})"), "/turns/0/seen");
  EXPECT_EQ(pointer_of(R"({"turns":[{"lease":"x","seen":0,"end":{"kind":"suspended","result":1}}]})"),
            "/turns/0/end/result");
  EXPECT_EQ(pointer_of(R"({"turns":[{"lease":"x","seen":0,"commands":[{"step":0,"kind":"sleep"}],"end":{}}]})"),
            "/turns/0/commands/0/step");
}

TEST(ReadTurn, TheStepsOfATurnAreConsecutive) {
  TurnRequest turn = every_command();
  turn.commands[2].event.step = 9;
  EXPECT_EQ(pointer_of(array_body("turns", std::vector{write_turn(turn)}).c_str()), "/turns/0/commands/2/step");
}

}  // namespace
}  // namespace hapax::wire
