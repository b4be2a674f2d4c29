// What hapax/testing.h promises to the tests of others.
#include <gtest/gtest.h>

#include "hapax/app.h"
#include "hapax/testing.h"

namespace {

using namespace std::chrono_literals;
using hapax::Context;
using hapax::testing::TestApp;

int subscription(Context& ctx, int months) {
  int paid = 0;
  for (int month = 0; month < months; ++month) {
    paid += ctx.run<int>("charge", month);
    ctx.sleep(std::chrono::days(30));
  }
  return paid;
}

TEST(TestApp, SkipsTheTimeThatAWorkflowSleeps) {
  TestApp app;
  app.task("charge", [](int) { return 10; });
  app.workflow("subscription", subscription);
  const auto began = app.now();
  const auto handle = app.start(subscription, "customer-7", 12);
  app.run_until_closed(handle);
  EXPECT_EQ(handle.result<int>(), 120);
  EXPECT_EQ(app.now() - began, 12 * std::chrono::days(30));
}

TEST(TestApp, RunsTheSameEveryTime) {
  const auto trace = [] {
    TestApp app;
    std::string order;
    app.task("note", [&](const std::string& text) { order += text; });
    app.workflow("many", [](Context& ctx, const std::string& name) {
      for (int i = 0; i < 3; ++i) {
        ctx.run("note", name);
        ctx.sleep(1s * (name == "a" ? 2 : 1));
      }
    });
    const auto a = app.start("many", "a", std::string("a")), b = app.start("many", "b", std::string("b"));
    app.run_until_closed(a);
    app.run_until_closed(b);
    return order;
  };
  const std::string first = trace();
  EXPECT_EQ(first.size(), 6U);
  EXPECT_EQ(trace(), first);
}

TEST(TestApp, SkipsTheBackoffOfRetries) {
  TestApp app;
  int attempts = 0;
  app.task("flaky", [&] {
    if (++attempts < 5) throw std::runtime_error("not yet");
    return attempts;
  });
  const auto task = app.submit("flaky", nullptr, {.max_attempts = 10, .retry = {.initial = 10min, .max = 24h}});
  app.run_until_closed(task);
  EXPECT_EQ(task.result<int>(), 5);
}

TEST(TestApp, SaysSoWhenNothingWillHappen) {
  TestApp app;
  app.workflow("approval", [](Context& ctx) { return ctx.wait_signal<bool>("approve"); });
  const auto handle = app.start("approval", "a-1");
  try {
    app.run_until_closed(handle);
    FAIL() << "it did happen";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "NothingToDo");
    EXPECT_STREQ(error.what(),
                 "workflow 'a-1' is suspended, and nothing will happen that lets it go on: does it wait for a signal?");
  }
  handle.signal("approve", true, "s");
  app.run_until_closed(handle);
  EXPECT_TRUE(handle.result<bool>());
}

TEST(TestApp, LetsTimePassWithoutSkippingMore) {
  TestApp app;
  app.workflow("approval", [](Context& ctx) { return ctx.wait_signal<bool>("approve", 48h).has_value(); });
  const auto handle = app.start("approval", "a-1");
  app.advance(47h);
  EXPECT_EQ(handle.status(), "suspended");
  app.advance(1h);
  EXPECT_EQ(handle.status(), "completed");
  EXPECT_FALSE(handle.result<bool>());
}

TEST(TestApp, FindsWhatIsNotDeterministic) {
  TestApp app;
  int calls = 0;
  app.task("a", [] {});
  app.workflow("dice", [&](Context& ctx) {
    const bool heads = ++calls % 2 == 0;
    ctx.run(heads ? "a" : "b");
    ctx.run("a");
  });
  app.task("b", [] {});
  const auto handle = app.start("dice", "d-1");
  try {
    app.run_until_closed(handle);
    FAIL() << "it was not found";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "NonDeterminism");
    EXPECT_STREQ(error.what(), "workflow 'd-1': step 1: expected task 'b', found task 'a'");
  }
}

TEST(TestApp, AWorkflowThatNeverEndsDoesNotKeepTheTestFromEnding) {
  TestApp app({.limit = 100});
  app.workflow("for_ever", [](Context& ctx) {
    ctx.sleep(1h);
    ctx.continue_as_new(nullptr);
  });
  const auto handle = app.start("for_ever", "f-1");
  try {
    app.run_until_closed(handle);
    FAIL() << "it ended";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "LimitExceeded");
  }
}

}  // namespace
