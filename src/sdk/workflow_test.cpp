// Workflows from their user's side, the same on every kind of URL.
#include <gtest/gtest.h>

#include <boost/describe.hpp>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "hapax/app.h"
#include "support/place.h"

namespace {

using namespace std::chrono_literals;
using hapax::Context;

struct Order {
  int id = 0;
  double amount = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, amount))

struct Paid {
  std::string payment;
};
BOOST_DESCRIBE_STRUCT(Paid, (), (payment))

std::string charge_card(const Order& order) { return "charge-" + std::to_string(order.id); }

Paid process_order(Context& ctx, const Order& order) {
  const auto payment = ctx.run(charge_card, order, hapax::key("payment-" + std::to_string(order.id)));
  ctx.sleep(1ms);
  return {payment};
}

// A place, and how many workflows a worker keeps in memory there: none is what a worker that dies after every turn
// keeps.
struct Setting {
  std::string kind;
  std::size_t kept;
};

class WorkflowTest : public ::testing::TestWithParam<Setting> {
 protected:
  hapax::Place place_{GetParam().kind};
  hapax::App app_ = hapax::open(place_.url());

  static hapax::WorkOptions options() {
    hapax::WorkOptions options;
    options.handle_signals = false;
    options.until_idle_for = 100ms;
    options.kept_workflows = GetParam().kept;
    return options;
  }

  void work() { app_.work(options()); }

  // Works until it is closed.
  void finish(const hapax::AnyWorkflowHandle& handle) {
    for (int i = 0; i < 100 && !handle.wait_for(0ms); ++i) work();
    ASSERT_TRUE(handle.wait_for(0ms)) << handle.status() << " " << handle.history_json();
  }
};

template <class Function>
std::string code_of(Function function) {
  try {
    function();
  } catch (const hapax::Error& error) {
    return error.code();
  }
  return "nothing";
}

// Suspended; or pending, when the time has come to try it again.
void expect_stuck(const hapax::AnyWorkflowHandle& handle) {
  const std::string status = handle.status();
  EXPECT_TRUE(status == "suspended" || status == "pending") << status;
}

TEST_P(WorkflowTest, IsAFunction) {
  app_.task("charge_card", charge_card, {.queue = "payments"});
  app_.workflow("process_order", process_order, {.queue = "orders"});
  const auto handle = app_.start("process_order", "order-456", Order{456, 99.99});
  EXPECT_TRUE(handle.created());
  EXPECT_EQ(handle.status(), "pending");
  finish(handle);
  EXPECT_EQ(handle.result<Paid>().payment, "charge-456");
  EXPECT_EQ(handle.status(), "completed");
  EXPECT_EQ(app_.find_workflow("order-456").run_id(), handle.run_id());
}

TEST_P(WorkflowTest, StartedTwiceItRunsOnce) {
  app_.task("charge_card", charge_card);
  app_.workflow("process_order", process_order);
  const auto first = app_.start(process_order, "order-1", Order{1, 2});
  const auto again = app_.start(process_order, "order-1", Order{1, 2});
  EXPECT_FALSE(again.created());
  EXPECT_TRUE(again.deduplicated_from());
  EXPECT_EQ(again.run_id(), first.run_id());
  EXPECT_EQ(code_of([&] { app_.start(process_order, "order-1", Order{1, 3}); }), "IdempotencyConflict");
  EXPECT_EQ(code_of([&] { app_.start(process_order, "order-1", Order{1, 2}, {.on_duplicate = "error"}); }),
            "WorkflowAlreadyExists");
  EXPECT_EQ(code_of([&] { app_.start(process_order, "order-1", Order{1, 2}, hapax::key("k")); }), "InvalidRequest");
  finish(first);
  EXPECT_EQ(again.result<Paid>().payment, "charge-1");
}

TEST_P(WorkflowTest, ManyAreUnderWayWithoutAThreadForEach) {
  constexpr int kChains = 8, kRuns = 40;
  app_.task("charge_card", charge_card);
  app_.workflow("pay", [](Context& ctx, const Order& order) -> std::string {
    if (order.id % 5 == 0) throw std::runtime_error("unlucky");
    return ctx.run(charge_card, order);
  });
  std::atomic<int> next = 0, paid = 0, failed = 0;
  std::promise<void> all_ended;
  std::atomic<int> running = kChains;
  const std::function<void()> start_next = [&] {
    const int i = next++;
    if (i >= kRuns) {
      if (--running == 0) all_ended.set_value();
      return;
    }
    app_.start_async("pay", "order-" + std::to_string(i), Order{i, 1}, {},
                     [&, i](const hapax::AnyWorkflowHandle& started) {
                       EXPECT_TRUE(started.created());
                       started.when_closed([&, i](const hapax::AnyWorkflowHandle& closed) {
                         EXPECT_EQ(closed.workflow_id(), "order-" + std::to_string(i));
                         try {
                           paid += closed.result<std::string>() == "charge-" + std::to_string(i);
                         } catch (const hapax::TaskFailed& failure) {
                           failed += failure.code() == "WorkflowFailed";
                         }
                         start_next();
                       });
                     });
  };
  for (int i = 0; i < kChains; ++i) start_next();
  auto end = all_ended.get_future();
  for (int i = 0; i < 200 && end.wait_for(0ms) != std::future_status::ready; ++i) work();
  ASSERT_EQ(end.wait_for(0ms), std::future_status::ready);
  EXPECT_EQ(paid, kRuns - kRuns / 5);
  EXPECT_EQ(failed, kRuns / 5);
}

TEST_P(WorkflowTest, AStartThatIsRefusedWithoutWaitingThrowsWhenItsHandleIsUsed) {
  app_.workflow("process_order", process_order);
  app_.start("process_order", "order-1", Order{1, 2});
  std::promise<hapax::AnyWorkflowHandle> refused;
  app_.start_async("process_order", "order-1", Order{1, 3}, {},
                   [&](hapax::AnyWorkflowHandle handle) { refused.set_value(std::move(handle)); });
  const hapax::AnyWorkflowHandle handle = refused.get_future().get();
  EXPECT_EQ(code_of([&] { handle.run_id(); }), "IdempotencyConflict");
  std::string told;
  handle.when_closed([&](const hapax::AnyWorkflowHandle& closed) { told = code_of([&] { closed.result<Paid>(); }); });
  EXPECT_EQ(told, "IdempotencyConflict");
  EXPECT_EQ(
      code_of([&] { app_.start_async("process_order", "", Order{}, {}, [](const hapax::AnyWorkflowHandle&) {}); }),
      "InvalidRequest");
}

TEST_P(WorkflowTest, ClosingTellsWhoeverWaitsForAnEnd) {
  std::promise<std::string> told;
  {
    hapax::App closing = hapax::open(place_.url());
    closing.start("nobody's", "w", 1).when_closed([&](const hapax::AnyWorkflowHandle& closed) {
      told.set_value(code_of([&] { closed.result<int>(); }));
    });
  }
  auto word = told.get_future();
  ASSERT_EQ(word.wait_for(0ms), std::future_status::ready);
  EXPECT_NE(word.get(), "nothing");
}

TEST_P(WorkflowTest, StepsRunOnceHoweverOftenTheCodeIsReplayed) {
  std::atomic<int> runs = 0;
  app_.task("count", [&](int n) { return n + 0 * ++runs; });
  app_.workflow("sum", [](Context& ctx, int steps) {
    int sum = 0;
    for (int i = 1; i <= steps; ++i) sum += ctx.run<int>("count", i);
    return sum;
  });
  const auto handle = app_.start("sum", "sum-1", 20);
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 210);
  EXPECT_EQ(runs, 20);
}

TEST_P(WorkflowTest, AStepThatWasCompletedUnderItsKeyYieldsItsResultWithoutRunning) {
  std::atomic<int> runs = 0;
  app_.task("charge", [&](int cents) { return cents + 0 * ++runs; });
  const auto task = app_.submit("charge", 99, hapax::key("charge-1"));
  work();
  EXPECT_EQ(task.result<int>(), 99);
  app_.workflow("pay", [](Context& ctx) { return ctx.run<int>("charge", 99, hapax::key("charge-1")); });
  const auto handle = app_.start("pay", "pay-1");
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 99);
  EXPECT_EQ(runs, 1);
}

TEST_P(WorkflowTest, StepsRunAtOnceAndAreAwaitedTogether) {
  app_.task("square", [](int n) { return n * n; });
  app_.workflow("squares", [](Context& ctx, int count) {
    std::vector<hapax::Future<int>> squares;
    for (int i = 1; i <= count; ++i) squares.push_back(ctx.start<int>("square", i));
    int sum = 0;
    for (const int square : ctx.all(squares)) sum += square;
    return sum;
  });
  const auto handle = app_.start("squares", "squares-1", 50);
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 42925);
}

TEST_P(WorkflowTest, TheFirstOfSeveralWins) {
  app_.task("quick", [] { return 1; });
  app_.workflow("race", [](Context& ctx) {
    const auto never = ctx.start_wait_signal<int>("never");
    const auto quick = ctx.start<int>("quick");
    const auto timer = ctx.start_sleep(1h);
    return ctx.any(never, quick, timer);
  });
  const auto handle = app_.start("race", "race-1");
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 1);
}

TEST_P(WorkflowTest, ASignalComesOncePerRequestKey) {
  app_.workflow("collect", [](Context& ctx) {
    std::vector<int> got;
    for (int i = 0; i < 2; ++i) got.push_back(ctx.wait_signal<int>("number"));
    return got;
  });
  const auto handle = app_.start("collect", "collect-1");
  handle.signal("number", 1, "request-1");  // before anybody waits for it
  work();
  EXPECT_EQ(handle.status(), "suspended");
  handle.signal("number", 1, "request-1");
  EXPECT_EQ(code_of([&] { handle.signal("number", 3, "request-1"); }), "IdempotencyConflict");
  work();
  EXPECT_EQ(handle.status(), "suspended");
  handle.signal("number", 2, "request-2");
  finish(handle);
  EXPECT_EQ(handle.result<std::vector<int>>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(code_of([&] { handle.signal("number", 4, "request-3"); }), "WorkflowClosed");
}

TEST_P(WorkflowTest, AWaitForASignalTimesOut) {
  app_.workflow("approval", [](Context& ctx) {
    const auto approved = ctx.wait_signal<bool>("approve", 20ms);
    return std::string(!approved ? "nobody answered" : *approved ? "approved" : "refused");
  });
  const auto handle = app_.start("approval", "approval-1");
  finish(handle);
  EXPECT_EQ(handle.result<std::string>(), "nobody answered");
}

TEST_P(WorkflowTest, AFailedStepIsCompensated) {
  std::atomic<int> refunds = 0;
  app_.task("charge", [] { return 1; });
  app_.task("ship", [] { throw hapax::FinalError("no such street"); });
  app_.task("refund", [&] { ++refunds; });
  app_.workflow("order", [](Context& ctx) -> std::string {
    ctx.run("charge");
    try {
      ctx.run("ship");
    } catch (const hapax::StepFailed& error) {
      ctx.run("refund");
      return "refunded: " + error.type() + ": " + error.message();
    }
    return "shipped";
  });
  const auto handle = app_.start("order", "order-2");
  finish(handle);
  EXPECT_EQ(handle.result<std::string>(), "refunded: FinalError: no such street");
  EXPECT_EQ(refunds, 1);
}

TEST_P(WorkflowTest, AnExceptionFailsIt) {
  app_.workflow("bad", [](Context&) { throw std::out_of_range("too far"); });
  const auto handle = app_.start("bad", "bad-1");
  finish(handle);
  try {
    handle.result<int>();
    FAIL() << "no exception";
  } catch (const hapax::TaskFailed& error) {
    EXPECT_EQ(error.code(), "WorkflowFailed");
    EXPECT_EQ(error.type(), "std::out_of_range");
    EXPECT_STREQ(error.what(), "too far");
  }
}

int doubled(Context& ctx, int n) {
  ctx.sleep(1ms);
  if (n < 0) throw std::runtime_error("negative");
  return 2 * n;
}

TEST_P(WorkflowTest, HasChildren) {
  app_.workflow("doubled", doubled);
  app_.workflow("parent", [](Context& ctx) {
    const auto sum = ctx.run_workflow(doubled, 20) + ctx.run_workflow<int>("doubled", 1, hapax::key("one"));
    try {
      ctx.run_workflow(doubled, -1);
    } catch (const hapax::StepFailed& error) {
      return std::to_string(sum) + " " + error.code() + " " + error.message();
    }
    return std::string("no");
  });
  const auto handle = app_.start("parent", "parent-1");
  finish(handle);
  EXPECT_EQ(handle.result<std::string>(), "42 WorkflowFailed negative");
  EXPECT_EQ(app_.find_workflow("one").result<int>(), 2);
}

TEST_P(WorkflowTest, ContinuesAsNew) {
  app_.task("next", [](int n) { return n + 1; });
  app_.workflow("count", [](Context& ctx, int n) {
    n = ctx.run<int>("next", n);
    if (n < 5) ctx.continue_as_new(n);
    return n;
  });
  const auto handle = app_.start("count", "count-1", 0);
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 5);
  EXPECT_NE(app_.find_workflow("count-1").run_id(), handle.run_id());
}

TEST_P(WorkflowTest, SideEffectsStayAsTheyWere) {
  app_.task("next", [](int n) { return n + 1; });
  std::mutex mutex;
  std::set<std::string> seen;
  app_.workflow("draw", [&](Context& ctx) {
    const auto drawn = ctx.uuid() + std::to_string(ctx.random());
    for (int i = 0; i < 3; ++i) {
      ctx.run<int>("next", i);
      const std::lock_guard lock(mutex);
      seen.insert(drawn);
    }
    return drawn;
  });
  const auto handle = app_.start("draw", "draw-1");
  finish(handle);
  EXPECT_EQ(seen, std::set{handle.result<std::string>()});
}

TEST_P(WorkflowTest, IsCancelledAndResumed) {
  app_.task("one", [] { return 1; });
  app_.workflow("wait", [](Context& ctx) { return ctx.run<int>("one") + ctx.wait_signal<int>("more"); });
  const auto handle = app_.start("wait", "wait-1");
  work();
  EXPECT_TRUE(handle.cancel("cancel-1"));
  EXPECT_TRUE(handle.cancel("cancel-1"));  // the first one's answer
  EXPECT_FALSE(handle.cancel("cancel-2"));
  EXPECT_EQ(handle.status(), "cancelled");
  EXPECT_EQ(code_of([&] { handle.result<int>(); }), "WorkflowCancelled");
  EXPECT_TRUE(handle.resume("resume-1"));
  work();
  handle.signal("more", 41, "signal-1");
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 42);
}

TEST_P(WorkflowTest, ThatFailedGoesOnWhenItIsResumed) {
  std::atomic<bool> broken = true;
  std::atomic<int> first = 0;
  app_.task("first", [&] { return ++first; });
  app_.task("second", [&] {
    if (broken) throw hapax::FinalError("broken");
    return 10;
  });
  app_.workflow("two", [](Context& ctx) { return ctx.run<int>("first") + ctx.run<int>("second"); });
  const auto handle = app_.start("two", "two-1");
  finish(handle);
  EXPECT_EQ(handle.status(), "failed");
  broken = false;
  EXPECT_TRUE(handle.resume("resume-1"));
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 11);
}

TEST_P(WorkflowTest, IsForkedFromAStep) {
  std::atomic<int> runs = 0;
  app_.task("add", [&](int n) { return n + 0 * ++runs; });
  app_.workflow("five", [](Context& ctx) {
    int sum = 0;
    for (int i = 1; i <= 5; ++i) sum += ctx.run<int>("add", i);
    return sum;
  });
  const auto handle = app_.start("five", "five-1");
  finish(handle);
  const auto fork = handle.fork(4, "fork-1", "five-again");
  EXPECT_EQ(fork.workflow_id(), "five-again");
  finish(fork);
  EXPECT_EQ(fork.result<int>(), 15);
  EXPECT_EQ(runs, 7);
  EXPECT_EQ(code_of([&] { handle.fork(7, "fork-2"); }), "InvalidRequest");
  EXPECT_EQ(code_of([&] { handle.fork(2, "fork-3", "five-again"); }), "WorkflowAlreadyExists");
}

TEST_P(WorkflowTest, OtherCodeLeavesItSuspendedUntilTheRightCodeIsBack) {
  app_.task("a", [] { return 1; });
  std::atomic<bool> is_right = true;
  app_.workflow(
      "w", [&](Context& ctx) { return is_right ? ctx.run<int>("a") + ctx.wait_signal<int>("go") : ctx.run<int>("b"); });
  const auto handle = app_.start("w", "w-1");
  work();

  is_right = false;
  handle.signal("go", 41, "s");
  work();
  expect_stuck(handle);
  EXPECT_NE(handle.history_json().find("step 1: expected task 'a', found task 'b'"), std::string::npos)
      << handle.history_json();

  is_right = true;
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 42);
}

TEST_P(WorkflowTest, OfAnUnknownTypeWaitsForAWorkerThatKnowsIt) {
  app_.workflow("known", [](Context&) { return 1; });
  const auto handle = app_.start("unknown", "unknown-1", nullptr, {.queue = "default"});
  work();
  EXPECT_EQ(handle.status(), "pending");  // not even claimed
  app_.workflow("unknown", [](Context&) { return 2; });
  finish(handle);
  EXPECT_EQ(handle.result<int>(), 2);
}

TEST_P(WorkflowTest, ThereAreManyAtOnce) {
  app_.task("square", [](int n) { return n * n; });
  app_.workflow("chain", [](Context& ctx, int n) {
    int sum = 0;
    for (int i = 0; i < 3; ++i) sum += ctx.run<int>("square", n);
    return sum;
  });
  std::vector<hapax::AnyWorkflowHandle> handles;
  for (int i = 0; i < 50; ++i) handles.push_back(app_.start("chain", "chain-" + std::to_string(i), i));
  for (int i = 0; i < 50; ++i) {
    finish(handles[static_cast<std::size_t>(i)]);
    EXPECT_EQ(handles[static_cast<std::size_t>(i)].result<int>(), 3 * i * i);
  }
}

// A worker takes its first turns for quick handlers and claims more than it needs. When it learns of slow ones, what it
// has asked for of tasks must not keep it from asking for turns.
TEST_P(WorkflowTest, OneAfterTheOtherIsTakenUpByAWorkerOfSlowSteps) {
  app_.task("slow", [] { std::this_thread::sleep_for(100ms); });
  app_.workflow("one_step", [](Context& ctx) { ctx.run("slow"); });
  hapax::WorkOptions working = options();
  working.until_idle_for.reset();
  working.threads = 4;
  std::jthread worker([&] { app_.work(working); });
  for (int i = 0; i < 9; ++i) {
    const auto handle = app_.start("one_step", "order-" + std::to_string(i));
    EXPECT_TRUE(handle.wait_for(8s)) << i;
  }
  app_.stop();
}

TEST_P(WorkflowTest, ThatSomebodyElseHasPutInItsPlaceIsWaitedFor) {
  app_.workflow("w", [](Context&, int n) { return n; });
  auto other = hapax::open(place_.url());
  if (GetParam().kind == "memory") other = app_;  // one process, one memory
  const auto handle = app_.start("w", "w-1", 1);
  const auto replacing = other.start("w", "w-1", 2, {.reuse = "replace"});
  auto result =
      std::async(std::launch::async, [&] { return handle.result<int>(); });  // the first one is cancelled by now
  finish(replacing);
  EXPECT_EQ(result.get(), 2);
}

TEST_P(WorkflowTest, ThatIsNotThereIsNotFound) {
  EXPECT_EQ(code_of([&] { app_.find_workflow("nowhere"); }), "WorkflowNotFound");
}

INSTANTIATE_TEST_SUITE_P(Urls, WorkflowTest,
                         ::testing::Values(Setting{"memory", 1000}, Setting{"memory", 0}, Setting{"sqlite", 1000},
                                           Setting{"sqlite", 0}, Setting{"http", 1000}),
                         [](const auto& setting) {
                           return setting.param.kind + (setting.param.kept ? "" : "_keeping_none");
                         });

}  // namespace
