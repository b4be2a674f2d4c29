// Updates: a workflow's code answers, once per request key, however often it is replayed.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "engine/local_engine.h"
#include "hapax/app.h"
#include "hapax/testing.h"
#include "http/server.h"
#include "store/memory/memory_store.h"

namespace {

using namespace std::chrono_literals;
using hapax::Context;
using hapax::testing::TestApp;

// Every turn replays the code from its start.
class Updates : public testing::Test {
 protected:
  // Asks, and runs the app until there is an answer.
  template <class Reply = int, class Question>
  Reply ask(const std::string& workflow_id, const std::string& name, const Question& question, const std::string& key) {
    auto asked = std::async(std::launch::async, [&, handle = app_.find_workflow(workflow_id)] {
      return handle.update<Reply>(name, question, key);
    });
    while (asked.wait_for(1ms) != std::future_status::ready) app_.run();
    return asked.get();
  }
  std::string error_of(const std::function<void()>& function) {
    try {
      function();
    } catch (const hapax::Error& error) {
      return error.code() + ": " + error.what();
    }
    return "none";
  }

  // A shop's stock: what is left is answered to each reservation.
  void declare_stock() {
    app_.workflow("stock", [this](Context& ctx, int left) {
      ctx.on("reserve", [&](int count) {
        ++handled_;
        if (count > left) throw std::out_of_range("only " + std::to_string(left) + " left");
        return left -= count;
      });
      ctx.wait_signal("close");
      return left;
    });
  }

  TestApp app_;
  int handled_ = 0;  // calls, those of replays included
};

TEST_F(Updates, AreAnsweredOncePerRequestKey) {
  declare_stock();
  const auto handle = app_.start("stock", "w", 10);
  app_.run();
  EXPECT_EQ(ask("w", "reserve", 3, "r1"), 7);
  EXPECT_EQ(ask("w", "reserve", 2, "r2"), 5);
  EXPECT_EQ(ask("w", "reserve", 3, "r1"), 7) << "the same answer again";
  handle.signal("close", nullptr, "s1");
  app_.run_until_closed(handle);
  EXPECT_EQ(handle.result<int>(), 5);
  EXPECT_EQ(ask("w", "reserve", 3, "r1"), 7) << "also when it is closed";
  EXPECT_EQ(handle.values_json(), "{}") << "answers are no values";
}

TEST_F(Updates, MayBeTyped) {
  static constexpr hapax::Update<int, int> kReserve{"reserve"};
  app_.workflow("typed", [](Context& ctx) {
    ctx.on(kReserve, [](int count) { return 10 - count; });
    ctx.wait_signal("close");
  });
  const auto handle = app_.start("typed", "w");
  auto asked = std::async(std::launch::async, [&] { return handle.update(kReserve, 3, hapax::request("r")); });
  while (asked.wait_for(1ms) != std::future_status::ready) app_.run();
  EXPECT_EQ(asked.get(), 7);
}

TEST_F(Updates, ThatAreRefusedThrowWhyEachTime) {
  declare_stock();
  app_.start("stock", "w", 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(error_of([&] { ask("w", "reserve", 3, "r1"); }), "UpdateRefused: only 1 left");
  }
  EXPECT_EQ(ask("w", "reserve", 1, "r2"), 0) << "the workflow goes on";
}

TEST_F(Updates, OfTheWrongShapeAreRefused) {
  declare_stock();
  app_.start("stock", "w", 1);
  EXPECT_NE(error_of([&] { ask("w", "reserve", std::string("three"), "r1"); }).find("UpdateRefused"),
            std::string::npos);
  EXPECT_EQ(handled_, 0);
}

TEST_F(Updates, WaitForTheirHandler) {
  app_.workflow("late", [](Context& ctx) {
    ctx.wait_signal("go");
    ctx.on("ask", [](int number) { return number + 1; });
    ctx.sleep(1h);
  });
  const auto handle = app_.start("late", "w");
  app_.run();
  auto asked = std::async(std::launch::async, [&] { return handle.update<int>("ask", 1, "r"); });
  while (handle.history_json().find("hapax.update:ask") == std::string::npos) std::this_thread::yield();
  handle.signal("go", nullptr, "s");
  app_.run();
  EXPECT_EQ(asked.get(), 2);
}

TEST_F(Updates, AreHandledInTheOrderOfTheHistory) {
  std::string trace;
  app_.task("step", [](int number) { return number; });
  app_.workflow("flow", [&](Context& ctx) {
    std::string seen;
    ctx.on("note", [&](const std::string& text) {
      seen += text + std::to_string(ctx.run<int>("step", static_cast<int>(seen.size())));
      return seen;
    });
    for (int i = 0; i < 3; ++i) {
      ctx.sleep(1h);
      seen += "|";
    }
    return seen;
  });
  const auto handle = app_.start("flow", "w");
  app_.run();
  EXPECT_EQ(ask<std::string>("w", "note", std::string("a"), "1"), "a0");
  app_.advance(1h);
  EXPECT_EQ(ask<std::string>("w", "note", std::string("b"), "2"), "a0|b3");
  EXPECT_EQ(ask<std::string>("w", "note", std::string("c"), "3"), "a0|b3c5");
  app_.run_until_closed(handle);
  EXPECT_EQ(handle.result<std::string>(), "a0|b3c5||");
}

TEST_F(Updates, NeedAWorkflowThatIsOpen) {
  EXPECT_EQ(error_of([&] { app_.find_workflow("w"); }), "WorkflowNotFound: there is no workflow 'w'");
  app_.workflow("quick", [](Context&) {});
  const auto handle = app_.start("quick", "w");
  app_.run_until_closed(handle);
  EXPECT_EQ(error_of([&] { ask("w", "reserve", 1, "r"); }).substr(0, 14), "WorkflowClosed");
}

TEST_F(Updates, ThatNobodyAnswersEndWithTheWorkflow) {
  app_.workflow("deaf", [](Context& ctx) { ctx.wait_signal("close"); });
  const auto handle = app_.start("deaf", "w");
  app_.run();
  auto asked = std::async(std::launch::async, [&] { return error_of([&] { handle.update<int>("ask", 1, "r"); }); });
  while (handle.history_json().find("hapax.update:ask") == std::string::npos) std::this_thread::yield();
  handle.signal("close", nullptr, "s");
  app_.run_until_closed(handle);
  EXPECT_EQ(asked.get(), "WorkflowClosed: The workflow 'w' was closed before it answered.");
}

TEST_F(Updates, GoOnWithTheNextRun) {
  app_.workflow("loop", [](Context& ctx, int round) {
    if (round == 0) {
      ctx.wait_signal("next");
      ctx.continue_as_new(1);
    }
    ctx.on("round", [&] { return round; });
    ctx.wait_signal("close");
  });
  const auto handle = app_.start("loop", "w", 0);
  app_.run();
  auto asked = std::async(std::launch::async, [&] { return handle.update<int>("round", nullptr, "r"); });
  while (handle.history_json().find("hapax.update:round") == std::string::npos) std::this_thread::yield();
  handle.signal("next", nullptr, "s");
  app_.run();
  EXPECT_EQ(asked.get(), 1);
}

TEST_F(Updates, OfOneKeyAndAnotherQuestionConflict) {
  declare_stock();
  app_.start("stock", "w", 9);
  EXPECT_EQ(ask("w", "reserve", 1, "r"), 8);
  EXPECT_EQ(error_of([&] { ask("w", "reserve", 2, "r"); }).substr(0, 19), "IdempotencyConflict");
}

TEST_F(Updates, HaveNamesOfTheirOwn) {
  declare_stock();
  const auto handle = app_.start("stock", "w", 9);
  EXPECT_NE(error_of([&] { handle.signal("hapax.update:reserve", 1, "s"); }).find("must not begin"), std::string::npos);
  EXPECT_NE(error_of([&] { ask("w", std::string(201, 'x'), 1, "r"); }).find("200 bytes"), std::string::npos);
}

TEST_F(Updates, TwoHandlersOfOneNameAreAMistake) {
  app_.workflow("twice", [](Context& ctx) {
    ctx.on("ask", [] { return 1; });
    ctx.on("ask", [] { return 2; });
  });
  const auto handle = app_.start("twice", "w");
  app_.run_until_closed(handle);
  EXPECT_THROW(handle.result<void>(), hapax::TaskFailed);
}

TEST(UpdatesOverHttp, AreAnsweredByAWorkerElsewhere) {
  const hapax::SystemClock clock;
  const auto engine = hapax::start_engine(hapax::open_memory_store(clock), {});
  hapax::ServerOptions options;
  options.port = 0;
  const auto server = hapax::start_server(*engine, std::move(options));
  const std::string url = "http://127.0.0.1:" + std::to_string(server->port());
  auto worker = hapax::open(url), caller = hapax::open(url);
  worker.workflow("stock", [](Context& ctx, int left) {
    ctx.on("reserve", [&](int count) {
      if (count > left) throw std::out_of_range("too many");
      return left -= count;
    });
    ctx.wait_signal("close");
    return left;
  });
  std::thread working([&] { worker.work({.handle_signals = false}); });
  const auto handle = caller.start("stock", "w", 10);
  EXPECT_EQ(handle.update<int>("reserve", 3, "r1"), 7);
  EXPECT_EQ(handle.update<int>("reserve", 3, "r1"), 7);
  EXPECT_THROW(handle.update<int>("reserve", 30, "r2"), hapax::TaskFailed);
  handle.signal("close", nullptr, "s");
  EXPECT_EQ(handle.result<int>(), 7);
  worker.stop();
  working.join();
}

}  // namespace
