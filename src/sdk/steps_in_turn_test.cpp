// Steps that the worker runs within the turn that asks for them: what others see of them, and when.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sdk/app_state.h"
#include "sdk/worker.h"

namespace hapax::detail {
namespace {

using namespace std::chrono_literals;

class StepsInTurn : public ::testing::Test {
 protected:
  StepsInTurn() {
    app_.declare("flow", DeclaredWorkflow{{}, workflow_of([](Context& ctx, int steps) {
                                            int sum = 0;
                                            for (int i = 0; i < steps; ++i) sum += ctx.run<int>("step", i);
                                            return sum;
                                          })},
                 nullptr);
  }

  template <class Function>
  void declare_step(Function function) {
    app_.declare("step", DeclaredTask{{}, handler_of(std::move(function))}, nullptr);
  }

  ExecutionId start(int steps) {
    SubmitRequest request;
    request.kind = Kind::workflow;
    request.type = "flow";
    request.input = parse_json(std::to_string(steps));
    request.idempotency_key = "w";
    await<std::vector<SubmitResult>>([&](auto reply) { engine().submit("default", {request}, std::move(reply)); });
    return engine().find_workflow("default", "w")->id;
  }

  // Works until there was nothing to do for a while.
  void work() {
    WorkOptions options;
    options.handle_signals = false;
    options.threads = 2;
    options.until_idle_for = 200ms;
    Worker(app_, options).run();
  }

  Execution run() { return engine().find_workflow("default", "w").value(); }
  std::vector<Event> history() { return engine().history("default", run().id, 0, 1000); }
  Execution step(std::int32_t number) { return engine().find("default", step_id(run().id, "step", number)).value(); }
  bool is_there(std::int32_t number) { return engine().find("default", step_id(run().id, "step", number)).has_value(); }
  bool await_there(std::int32_t number) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!is_there(number) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return is_there(number);
  }

  Engine& engine() { return app_.engine(); }

  AppState app_{open_engine("memory:"), "default"};
};

TEST_F(StepsInTurn, AQuickStepIsToldOfWhenItIsDone) {
  std::atomic<int> unknown = 0;
  declare_step([&](int i) {
    if (!is_there(i + 1)) ++unknown;
    return i + (i == 0 || step(i).status == Status::completed ? 1 : 100);  // the one before it is
  });
  // The first is begun the ordinary way: nobody has asked for tasks yet, so it is not known that there are none.
  start(5);
  work();
  EXPECT_EQ(run().result, "15");
  EXPECT_GE(unknown, 4);
  EXPECT_EQ(history().size(), 11U);
  EXPECT_EQ(step(5).attempt, 1);
  EXPECT_EQ(engine().counters().completed, 5);
}

TEST_F(StepsInTurn, ASlowStepIsToldOfWhileItRuns) {
  std::atomic<int> told = 0;
  declare_step([&](int i) {
    if (!await_there(i + 1)) return 1000;
    ++told;
    return step(i + 1).status == Status::running ? 1 : 1000;
  });
  start(3);
  work();
  EXPECT_EQ(run().result, "3");
  EXPECT_EQ(told, 3);
  EXPECT_EQ(history().size(), 7U);
}

TEST_F(StepsInTurn, AStepThatFailsIsTriedAgain) {
  std::atomic<int> runs = 0;
  declare_step([&](int i) -> int {
    if (++runs == 2) throw std::runtime_error("once");
    return i;
  });
  start(3);
  for (int i = 0; i < 100 && !is_closed(run().status); ++i) work();
  EXPECT_EQ(run().result, "3");
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(step(2).attempt, 2);
  ASSERT_EQ(step(2).failed_attempts.size(), 1U);
  EXPECT_EQ(step(2).failed_attempts[0].error.message, "once");
}

TEST_F(StepsInTurn, AStepThatFailsForGoodFailsTheRun) {
  declare_step([&](int i) -> int {
    if (i == 1) throw FinalError("never");
    return i;
  });
  start(3);
  work();
  EXPECT_EQ(run().status, Status::failed);
  EXPECT_EQ(step(2).status, Status::failed);
  EXPECT_FALSE(is_there(3));
}

TEST_F(StepsInTurn, AQueueWithLimitsDecidesItself) {
  std::atomic<int> unknown = 0;
  declare_step([&](int i) {
    if (!is_there(i + 1)) ++unknown;
    return 1;
  });
  QueueSettings settings;
  settings.max_running = 1;
  engine().put_queue("default", "default", settings);
  start(5);
  work();
  EXPECT_EQ(run().result, "5");
  EXPECT_EQ(unknown, 0);
}

TEST_F(StepsInTurn, WhatWasDoneInARunThatIsCancelledIsKept) {
  declare_step([&](int i) {
    if (i == 2) {
      ControlRequest cancel;
      cancel.name_space = "default";
      cancel.request_key = "k";
      cancel.action = ControlRequest::Action::cancel;
      cancel.workflow_id = "w";
      await<ControlOutcome>([&](auto reply) { engine().control(cancel, std::move(reply)); });
    }
    return i;
  });
  start(5);
  work();
  EXPECT_EQ(run().status, Status::cancelled);
  EXPECT_EQ(step(3).status, Status::completed);
  EXPECT_FALSE(is_there(4));
}

TEST_F(StepsInTurn, AWorkerThatIsAskedToStopBeginsNoMore) {
  declare_step([&](int i) {
    if (i == 2) app_.stop_requested = true;
    return i;
  });
  start(1000);
  work();
  EXPECT_FALSE(is_closed(run().status));
  EXPECT_LT(run().run.steps, 1000);
  EXPECT_NE(run().status, Status::running);
}

}  // namespace
}  // namespace hapax::detail
