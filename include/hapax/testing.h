// For tests of workflows: an app in memory, on a clock that skips the waiting.
//
//   hapax::testing::TestApp app;
//   app.task("charge_card", charge_card);
//   auto subscribe = app.workflow("subscription", subscription);
//   app.mock(charge_card, [](const Order&) { return std::string("paid"); });
//   auto handle = subscribe.start("customer-7", Customer{7});
//   app.run_until_closed(handle);                       // twelve months, in some milliseconds
//   EXPECT_EQ(handle.result(), 12);
//
// It is an App like any other, except that nothing runs by itself. The functions below run everything on the calling
// thread, one after the other and in the same order every time. When nothing can continue, the time moves on to when
// something can. So call Handle::result() and the like only on what is closed: otherwise they would wait forever.
#pragma once

#include "hapax/app.h"
#include "hapax/detail/durations.h"
#include "hapax/detail/pointers.h"

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

  // Lets this function stand for a task, in place of the declared one if there is one: by its value, its function or
  // its name. It must take and return what the task does.
  template <class Input, class Result, class Function>
  void mock(const Task<Input, Result>& task, Function function) {
    static_assert(detail::fits<Function, Input, Result>(),
                  "hapax: this mock does not take the input or does not return the result of the task");
    mock(task.name(), std::move(function));
  }
  template <class Result, class... Parameters, class Function>
  void mock(Result (*task)(Parameters...), Function function) {
    using Mocked = Result (*)(Parameters...);
    static_assert(detail::fits<Function, detail::FunctionInput<Mocked>, detail::FunctionResult<Mocked>>(),
                  "hapax: this mock does not take the input or does not return the result of the task");
    mock(type_of(reinterpret_cast<const void*>(task)), std::move(function));
  }
  template <class Function>
  void mock(std::string_view type, Function function) {
    mock_json(type, detail::handler_of(std::move(function)));
  }

  // Runs until it is closed, and moves the time on as needed. Throws Error with the code NothingToDo if it waits for
  // something that does not happen by itself (a signal), and with the codes NonDeterminism or UnknownWorkflowType if
  // the code of a workflow does not fit.
  void run_until_closed(const AnyWorkflowHandle& handle);
  void run_until_closed(const AnyHandle& handle);

  // Runs what can run at this moment. Throws as above if code does not fit.
  void run();

  // Lets this much time pass, and runs what becomes due, each at its time.
  void advance(Milliseconds duration);

 private:
  class Impl;
  explicit TestApp(std::shared_ptr<Impl> impl);

  void mock_json(std::string_view type, detail::Handler handler);

  std::shared_ptr<Impl> impl_;
};

// Runs the code of a workflow against the history of one that ran before, and changes nothing: a gate before every
// deploy. `exported` is what `hapax history ID --export` writes, or AnyWorkflowHandle::export_json(). Throws Error with
// the code NonDeterminism, and the step, what was expected and what the code asks for instead, if workflows that run
// with this history would be stuck. The workflow must have been declared, on any app.
//
//   hapax::testing::TestApp app;
//   auto process = app.workflow("process_order", process_order);
//   hapax::testing::replay(process, read_file("order-456.history.json"));
template <class Input, class Result>
void replay(const Workflow<Input, Result>& workflow, std::string_view exported) {
  detail::replay(workflow, exported);
}

}  // namespace hapax::testing
