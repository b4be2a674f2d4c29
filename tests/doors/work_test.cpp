// What workers send: claims, heartbeats, reports, turns.
#include "doors/doors.h"
#include "wire/write_request.h"

namespace hapax::doors {
namespace {

using namespace std::chrono_literals;

const std::string kLongName(129, 'x'), kLongKey(256, 'x');

class Work : public Doors {
 protected:
  std::vector<Engine*> engines() { return {local_.get(), remote_.get()}; }
};

TEST_F(Work, ABadClaimIsRefusedAtEveryDoor) {
  struct Bad {
    std::string place;
    std::function<void(ClaimCall&)> set;
    std::string body;  // empty: JSON cannot say it
  };
  const std::vector<Bad> rows{
      {"/worker", [](ClaimCall& c) { c.worker = ""; }, R"({"worker":""})"},
      {"/worker", [](ClaimCall& c) { c.worker = kLongName; }, R"({"worker":")" + kLongName + "\"}"},
      {"/worker", [](ClaimCall& c) { c.worker = "\xff"; }, ""},
      {"/queues", [](ClaimCall& c) { c.queues.clear(); }, R"({"queues":[]})"},
      {"/queues/1", [](ClaimCall& c) { c.queues = {"a", ""}; }, R"({"queues":["a",""]})"},
      {"/queues/2", [](ClaimCall& c) { c.queues = {"a", "b", "a"}; }, R"({"queues":["a","b","a"]})"},
      {"/claim_id", [](ClaimCall& c) { c.claim_id = "a\nb"; }, R"({"claim_id":"a\nb"})"},
      {"/types/1", [](ClaimCall& c) { c.types = {"a", ""}; }, R"({"types":["a",""]})"},
      {"/types/2", [](ClaimCall& c) { c.types = {"a", "b", "a"}; }, R"({"types":["a","b","a"]})"},
      {"/kinds", [](ClaimCall& c) { c.tasks = false; }, R"({"kinds":[]})"},
      {"/limit", [](ClaimCall& c) { c.limit = 0; }, R"({"limit":0})"},
      {"/limit", [](ClaimCall& c) { c.limit = 1001; }, R"({"limit":1001})"},
      {"/wait", [](ClaimCall& c) { c.wait = 61s; }, R"({"wait":"61s"})"},
      {"/wait", [](ClaimCall& c) { c.wait = -1s; }, R"({"wait":"-1s"})"},
      {"/lease", [](ClaimCall& c) { c.lease = 999ms; }, R"({"lease":"999ms"})"},
      {"/lease", [](ClaimCall& c) { c.lease = 25h; }, R"({"lease":"25h"})"},
  };
  for (const Bad& bad : rows) {
    SCOPED_TRACE(bad.place + " " + bad.body);
    ClaimCall call{.name_space = space_, .queues = {"default"}, .worker = "w"};
    bad.set(call);
    for (Engine* engine : engines()) {
      EXPECT_EQ(fault_of([&] { await<std::vector<Claimed>>([&](auto reply) { engine->claim(call, reply); }); }),
                invalid(bad.place));
    }
    if (!bad.body.empty()) {
      EXPECT_EQ(over_http("POST", "/v1/claims", bad.body), invalid(bad.place));
    }
  }
  for (App* app : {&embedded_, &far_}) {
    app->task("t", [](int) {});
    EXPECT_EQ(fault_of([&] { app->work({.lease = 999ms, .handle_signals = false, .until_idle_for = 1ms}); }),
              invalid("/lease"));
    EXPECT_EQ(fault_of([&] { app->work({.queues = {"a", ""}, .handle_signals = false, .until_idle_for = 1ms}); }),
              invalid("/queues/0"));
  }
}

TEST_F(Work, ABadLeaseOfAHeartbeatIsRefusedAtEveryDoor) {
  for (const Duration lease : {Duration(999ms), Duration(25h), Duration(-1s)}) {
    for (Engine* engine : engines()) {
      EXPECT_EQ(fault_of([&] {
                  await<std::vector<ExtendOutcome>>(
                      [&](auto reply) { engine->heartbeat({Extension{{}, lease, space_}}, reply); });
                }),
                invalid("/lease"));
    }
    const std::string body = R"({"leases":["x"],"lease":")" + format_duration(lease) + "\"}";
    EXPECT_EQ(over_http("POST", "/v1/claims/heartbeat", body), invalid("/lease"));
  }
}

TEST_F(Work, ABadReportIsRefusedAtEveryDoor) {
  const auto expect = [&](const AttemptError& error, const std::string& json, const std::string& place) {
    const Report report{{}, Report::Failed{error, true}, space_};
    for (Engine* engine : engines()) {
      EXPECT_EQ(
          fault_of([&] { await<std::vector<FinishOutcome>>([&](auto reply) { engine->finish({report}, reply); }); }),
          invalid("/outcomes/0/error" + place));
    }
    if (json.empty()) return;
    const std::string body = R"({"outcomes":[{"lease":"x","error":)" + json + "}]}";
    EXPECT_EQ(over_http("POST", "/v1/claims/finish", body), invalid("/outcomes/0/error" + place));
  };
  expect({"", "m"}, R"({"type":"","message":"m"})", "/type");
  expect({kLongName, "m"}, R"({"type":")" + kLongName + R"(","message":"m"})", "/type");
  expect({"E", "\xff"}, "", "/message");
  const std::string long_stack(16 * 1024 + 1, 'x');
  expect({"E", "m", long_stack}, R"({"message":"m","stack":")" + long_stack + "\"}", "/stack");
  expect({"E", "m", "\xff"}, "", "/stack");
}

TEST_F(Work, ABadRetryAfterOrSnoozeIsRefusedAtEveryDoor) {
  const auto expect = [&](const decltype(Report::outcome)& outcome, const std::string& members,
                          const std::string& place) {
    const Report report{{}, outcome, space_};
    for (Engine* engine : engines()) {
      EXPECT_EQ(
          fault_of([&] { await<std::vector<FinishOutcome>>([&](auto reply) { engine->finish({report}, reply); }); }),
          invalid("/outcomes/0" + place));
    }
    const std::string body = R"({"outcomes":[{"lease":"x",)" + members + "}]}";
    EXPECT_EQ(over_http("POST", "/v1/claims/finish", body), invalid("/outcomes/0" + place));
  };
  Report::Failed failed;
  failed.error = {"E", "m"};
  failed.retry_after = Duration(-1s);
  expect(failed, R"("error":{"message":"m","retry_after":"-1s"})", "/error/retry_after");
  failed.retry_after = from_ms(-1);
  expect(failed, R"("error":{"message":"m","retry_after":"soon"})", "/error/retry_after");
  expect(Report::Snoozed{-1s}, R"("snooze":"-1s")", "/snooze");
  EXPECT_EQ(over_http("POST", "/v1/claims/finish", R"({"outcomes":[{"lease":"x","snooze":"1s","result":1}]})"),
            invalid("/outcomes/0"));
}

TEST_F(Work, WhatAHeartbeatMayNotSayIsRefusedAtEveryDoor) {
  const auto expect = [&](std::optional<std::string> progress, std::vector<std::string> log, const std::string& members,
                          const std::string& place) {
    const Extension extension{{}, 60s, space_, std::move(progress), std::move(log)};
    for (Engine* engine : engines()) {
      EXPECT_EQ(fault_of([&] {
                  await<std::vector<ExtendOutcome>>([&](auto reply) { engine->heartbeat({extension}, reply); });
                }),
                invalid("/leases/0" + place));
    }
    if (members.empty()) return;
    const std::string body = R"({"leases":[{"lease":"x",)" + members + "}]}";
    EXPECT_EQ(over_http("POST", "/v1/claims/heartbeat", body), invalid("/leases/0" + place));
  };
  const std::string long_text(64 * 1024 + 1, 'x');
  expect("\"" + long_text + "\"", {}, R"("progress":")" + long_text + "\"", "/progress");
  expect({}, {long_text}, R"("log":[")" + long_text + "\"]", "/log");
  expect({}, {"a", "\xff"}, "", "/log/1");
  for (const char* item : {R"({"lease":"x","log":"line"})", R"({"lease":"x","log":[1]})", R"({"progress":1})", "7"}) {
    EXPECT_NE(over_http("POST", "/v1/claims/heartbeat", std::string(R"({"leases":[)") + item + "]}"), kAccepted)
        << item;
  }
}

TEST_F(Work, ABadTurnIsRefusedAtEveryDoor) {
  struct Bad {
    std::string place;
    std::function<void(TurnRequest&)> set;
  };
  const auto command = [](Event::Kind kind, std::string name = "", std::int32_t step = 1) {
    TurnRequest::Command command;
    command.event.kind = kind;
    command.event.step = step;
    command.event.name = std::move(name);
    return command;
  };
  const auto start = [&](const std::function<void(SubmitRequest&)>& set) {
    SubmitRequest request;
    request.type = "t";
    set(request);
    TurnRequest::Command started = command(Event::Kind::task, request.type);
    started.start = std::move(request);
    return started;
  };
  const std::vector<Bad> rows{
      {"/seen", [](TurnRequest& t) { t.seen = -1; }},
      {"/commands/0/step", [&](TurnRequest& t) { t.commands = {command(Event::Kind::wait_signal, "s", 0)}; }},
      {"/commands/1/step",
       [&](TurnRequest& t) {
         t.commands = {command(Event::Kind::wait_signal, "s"), command(Event::Kind::wait_signal, "s", 3)};
       }},
      {"/commands/0/until", [&](TurnRequest& t) { t.commands = {command(Event::Kind::sleep)}; }},
      {"/commands/0/name", [&](TurnRequest& t) { t.commands = {command(Event::Kind::wait_signal, " ")}; }},
      {"/commands/0/name", [&](TurnRequest& t) { t.commands = {command(Event::Kind::wait_signal, kLongKey)}; }},
      {"/commands/0/start", [&](TurnRequest& t) { t.commands = {command(Event::Kind::task)}; }},
      {"/commands/0/start/type", [&](TurnRequest& t) { t.commands = {start([](SubmitRequest& r) { r.type = ""; })}; }},
      {"/commands/0/start/max_attempts",
       [&](TurnRequest& t) { t.commands = {start([](SubmitRequest& r) { r.max_attempts = 0; })}; }},
      {"/commands/0/start/id",
       [&](TurnRequest& t) { t.commands = {start([](SubmitRequest& r) { r.id = ExecutionId::parse(new_id()); })}; }},
      {"/end/error/type", [](TurnRequest& t) { t.end = Turn::Failed{{"", "m"}}; }},
      {"/end/error/type", [](TurnRequest& t) { t.end = Turn::Stuck{{kLongName, "m"}}; }},
  };
  for (const Bad& bad : rows) {
    SCOPED_TRACE(bad.place);
    TurnRequest turn;
    turn.name_space = space_;
    turn.end = Turn::Suspended{};
    bad.set(turn);
    for (Engine* engine : engines()) {
      EXPECT_EQ(
          fault_of([&] { await<std::vector<TurnOutcome>>([&](auto reply) { engine->commit_turns({turn}, reply); }); }),
          invalid("/turns/0" + bad.place));
    }
    EXPECT_EQ(over_http("POST", "/v1/claims/turns", wire::array_body("turns", std::vector{wire::write_turn(turn)})),
              invalid("/turns/0" + bad.place));
  }
}

}  // namespace
}  // namespace hapax::doors
