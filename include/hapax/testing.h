// For tests of workflows: an app in memory, on a clock that skips the waiting.
//
//   hapax::testing::TestApp app;
//   app.task("charge_card", [](const Order&) { return std::string("paid"); });
//   app.workflow("subscription", subscription);
//   auto handle = app.start(subscription, "customer-7", Customer{7});
//   app.run_until_closed(handle);                       // twelve months, in some milliseconds
//   EXPECT_EQ(handle.result<int>(), 12);
//
// It is an App like any other, except that nothing runs by itself. The functions below run everything on the calling
// thread, one after the other and in the same order every time. When nothing can continue, the time moves on to when
// something can. So call Handle::result() and the like only on what is closed: otherwise they would wait forever.
#pragma once

#include <chrono>
#include <memory>

#include "hapax/app.h"

namespace hapax::testing {

struct TestOptions {
  // Every turn begins at the start of the workflow's code, as after the death of a worker, so that non-determinism is
  // found.
  bool replay_every_turn = true;

  std::chrono::system_clock::time_point starts_at{std::chrono::seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z

  // The most attempts and turns that one call runs: a workflow that never ends must not keep a test from ending.
  std::size_t limit = 100'000;
};

class TestApp : public App {
 public:
  explicit TestApp(const TestOptions& options = {});

  std::chrono::system_clock::time_point now() const;

  // Runs until it is closed, and moves the time on as needed. Throws Error with the code NothingToDo if it waits for
  // something that does not happen by itself (a signal), and with the codes NonDeterminism or UnknownWorkflowType if
  // the code of a workflow does not fit.
  void run_until_closed(const WorkflowHandle& handle);
  void run_until_closed(const Handle& handle);

  // Runs what can run at this moment. Throws as above if code does not fit.
  void run();

  // Lets this much time pass, and runs what becomes due, each at its time.
  void advance(Milliseconds duration);

 private:
  class Impl;
  explicit TestApp(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace hapax::testing
