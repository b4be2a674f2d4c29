// The gate before a deploy: changed code against the histories of what runs.
#include <gtest/gtest.h>

#include <atomic>

#include "hapax/testing.h"

namespace hapax {
namespace {

using testing::TestApp;

// An order of v1, up to its wait.
std::string history_of_v1(bool to_the_end = false) {
  TestApp app;
  app.task("charge", [](int n) { return n; });
  app.task("ship", [](int n) { return n; });
  auto process = app.workflow("process", [](Context& ctx, int n) {
    ctx.run<int>("charge", n);
    ctx.wait_signal("go");
    return ctx.run<int>("ship", n);
  });
  const auto run = process.start("order-1", 7);
  app.run();
  if (to_the_end) {
    run.signal("go", nullptr, "go");
    app.run_until_closed(run);
  }
  return run.export_json();
}

std::string mistake_in(const std::string& history, auto code) {
  TestApp app;
  auto process = app.workflow("process", code);
  try {
    testing::replay(process, history);
  } catch (const Error& error) {
    return error.code() + ": " + error.what();
  }
  return "none";
}

int v1(Context& ctx, int n) {
  ctx.run<int>("charge", n);
  ctx.wait_signal("go");
  return ctx.run<int>("ship", n);
}

int v2_without_version(Context& ctx, int n) {
  ctx.run<int>("check_fraud", n);
  return v1(ctx, n);
}

int v2(Context& ctx, int n) {
  if (ctx.version("fraud check") == 1) ctx.run<int>("check_fraud", n);
  return v1(ctx, n);
}

TEST(Replay, OfTheSameCodeFindsNothing) {
  EXPECT_EQ(mistake_in(history_of_v1(), v1), "none");
  EXPECT_EQ(mistake_in(history_of_v1(true), v1), "none");
}

TEST(Replay, FindsAStepThatWasAddedWithoutAVersion) {
  EXPECT_EQ(mistake_in(history_of_v1(), v2_without_version),
            "NonDeterminism: workflow 'order-1' (process): step 1: expected task 'charge', found task 'check_fraud'");
  EXPECT_EQ(mistake_in(history_of_v1(), v2), "none");
  EXPECT_EQ(mistake_in(history_of_v1(true), v2), "none");
}

TEST(Replay, FindsStepsThatWereTakenAwayOrAddedAtTheEnd) {
  EXPECT_EQ(mistake_in(history_of_v1(), [](Context& ctx, int n) { return ctx.run<int>("charge", n); }),
            "NonDeterminism: workflow 'order-1' (process): step 2: expected wait_signal 'go', found the end of the "
            "workflow");
  EXPECT_EQ(mistake_in(history_of_v1(true),
                       [](Context& ctx, int n) {
                         v1(ctx, n);
                         return ctx.run<int>("mail", n);
                       }),
            "NonDeterminism: workflow 'order-1' (process): step 4: expected the end of the workflow, found task "
            "'mail'");
}

TEST(Replay, RefusesWhatIsNoHistoryOfThatWorkflow) {
  EXPECT_TRUE(mistake_in("{}", v1).starts_with("InvalidRequest: this is no exported history: it has no \"type\""));
  EXPECT_TRUE(mistake_in("[", v1).starts_with("InvalidJson"));
  TestApp app;
  auto other = app.workflow("other", v1);
  EXPECT_THROW(testing::replay(other, history_of_v1()), Error);
}

}  // namespace
}  // namespace hapax
