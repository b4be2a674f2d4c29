// What handlers and workflows may say beyond results: snooze, progress, cancelled steps, published values, signals.
#include <gtest/gtest.h>

#include <thread>

#include "hapax/app.h"
#include "hapax/testing.h"

namespace {

using namespace std::chrono_literals;
using hapax::Context;
using hapax::testing::TestApp;

TEST(Handlers, ASnoozeRunsAgainLaterAndCostsNoAttempt) {
  TestApp app;
  int calls = 0;
  app.task("poll", [&](hapax::TaskContext& context) {
    if (++calls < 4) throw hapax::Snooze(5min);
    return context.attempt();
  });
  const auto began = app.now();
  const auto handle = app.submit("poll", nullptr, {.max_attempts = 1});
  app.run_until_closed(handle);
  EXPECT_EQ(handle.result<int>(), 1);
  EXPECT_EQ(app.now() - began, 15min);
}

TEST(Handlers, RetryLaterKeepsTheNextAttemptBack) {
  TestApp app;
  int calls = 0;
  app.task("call", [&] {
    if (++calls == 1) throw hapax::RetryLater("too many requests", 1h, R"({"status":429})");
    return calls;
  });
  const auto began = app.now();
  const auto handle = app.submit("call", nullptr);
  app.run();
  EXPECT_NE(app.why_json(handle.id()).find("retrying"), std::string::npos);
  app.run_until_closed(handle);
  EXPECT_EQ(handle.result<int>(), 2);
  EXPECT_GE(app.now() - began, 1h);
}

TEST(Handlers, ProgressAndLogAreSentBeforeTheResult) {
  auto app = hapax::open("memory:");
  app.task("import", [](hapax::TaskContext& context) {
    context.progress(50);
    context.log("half");
  });
  const auto handle = app.submit("import", nullptr);
  app.work({.handle_signals = false, .until_idle_for = 50ms});
  EXPECT_EQ(handle.status(), "completed");
  EXPECT_NE(app.why(handle.id()).find("It completed at"), std::string::npos);
}

TEST(Workflows, ACancelledTimerEndsTheWaitForIt) {
  TestApp app;
  app.workflow("race", [](Context& ctx) {
    const auto timer = ctx.start_sleep(24h);
    const auto signal = ctx.start_wait_signal<int>("go");
    ctx.cancel(timer);
    ctx.cancel(signal);
    try {
      timer.get();
    } catch (const hapax::StepFailed& failed) {
      return failed.code() + " " + failed.status();
    }
    return std::string("not cancelled");
  });
  const auto began = app.now();
  const auto handle = app.start("race", "w");
  app.run_until_closed(handle);
  EXPECT_EQ(handle.result<std::string>(), "StepCancelled cancelled");
  EXPECT_EQ(app.now(), began);
}

TEST(Workflows, ACancelledTaskIsNotRun) {
  TestApp app;
  int calls = 0;
  app.task("late", [&] { ++calls; });
  app.workflow("flow", [](Context& ctx) {
    const auto task = ctx.start("late", nullptr, {.delay = 1h});
    ctx.cancel(task);
    try {
      task.get();
    } catch (const hapax::StepFailed& failed) {
      return failed.code();
    }
    return std::string("not cancelled");
  });
  const auto handle = app.start("flow", "w");
  app.run_until_closed(handle);
  EXPECT_EQ(handle.result<std::string>(), "TaskCancelled");
  EXPECT_EQ(calls, 0);
}

TEST(Workflows, PublishedValuesCanBeRead) {
  TestApp app;
  app.workflow("flow", [](Context& ctx) {
    ctx.publish("state", std::string("begun"));
    ctx.publish("percent", 10);
    ctx.sleep(1h);
    ctx.publish("state", std::string("done"));
  });
  const auto handle = app.start("flow", "w");
  EXPECT_EQ(handle.values_json(), "{}");
  app.run();
  EXPECT_EQ(handle.values_json(), R"({"percent":10,"state":"begun"})");
  app.run_until_closed(handle);
  EXPECT_EQ(handle.values_json(), R"({"percent":10,"state":"done"})");
}

TEST(Workflows, OneSignalsAnother) {
  TestApp app;
  app.workflow("receiver", [](Context& ctx) { return ctx.wait_signal<int>("restock"); });
  app.workflow("sender", [](Context& ctx) {
    ctx.signal("warehouse", "restock", 7);
    try {
      ctx.signal("nobody", "restock", 7);
    } catch (const hapax::StepFailed& failed) {
      return failed.type();
    }
    return std::string("delivered");
  });
  const auto receiver = app.start("receiver", "warehouse");
  const auto sender = app.start("sender", "order");
  app.run_until_closed(sender);
  app.run_until_closed(receiver);
  EXPECT_EQ(receiver.result<int>(), 7);
  EXPECT_EQ(sender.result<std::string>(), "WorkflowNotFound");
}

TEST(Workflows, ARequestedCancelIsThrownOnceAtTheNextWaitAndMayBeAnswered) {
  TestApp app;
  std::vector<std::string> done;
  app.task("undo", [&](const std::string& what) { done.push_back(what); });
  app.workflow("order", [](Context& ctx) {
    try {
      ctx.sleep(24h);
    } catch (const hapax::CancelRequested& cancel) {
      ctx.run("undo", cancel.reason_json());
      ctx.sleep(1h);
      return std::string("compensated");
    }
    return std::string("shipped");
  });
  const auto handle = app.start("order", "w");
  app.run();
  EXPECT_TRUE(handle.request_cancel(std::string("by the customer"), "c1"));
  EXPECT_TRUE(handle.request_cancel(std::string("by the customer"), "c1")) << "the same request";
  EXPECT_FALSE(handle.request_cancel(std::string("again"), "c2"));
  app.run_until_closed(handle);
  EXPECT_EQ(handle.result<std::string>(), "compensated");
  EXPECT_EQ(done, std::vector<std::string>{"\"by the customer\""});
}

TEST(Workflows, ARequestedCancelThatIsNotAnsweredCancels) {
  TestApp app;
  app.workflow("order", [](Context& ctx) { ctx.sleep(24h); });
  const auto handle = app.start("order", "w");
  app.run();
  handle.request_cancel(nullptr, "c1");
  app.run();
  EXPECT_EQ(handle.status(), "cancelled");
}

TEST(Workflows, WhySaysWhatItWaitsFor) {
  TestApp app;
  app.workflow("order", [](Context& ctx) { ctx.wait_signal("approve"); });
  app.start("order", "order-456");
  app.run();
  EXPECT_EQ(app.why("order-456"), "Step 1 waits for the signal approve.");
  EXPECT_NE(app.why_json("order-456").find(R"("code":"waits_for_signal")"), std::string::npos);
  EXPECT_THROW(app.why("nobody"), hapax::Error);
}

}  // namespace
