// For tests of the replayer: a run, and the history that its commits would have made.
#pragma once

#include <gtest/gtest.h>

#include <boost/describe.hpp>

#include "hapax/app.h"
#include "sdk/workflow_run.h"

namespace hapax::detail {

struct Order {
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id))

inline std::string charge(const Order& order) { return "charged " + std::to_string(order.id); }
inline int twice(Context&, int n) { return 2 * n; }

inline constexpr Time kNow = from_ms(1'767'225'600'000);  // 2026-01-01

// A run, and the history that its commits would have made.
class Replay {
 public:
  explicit Replay(WorkflowFunction function) : function_(std::move(function)) {
    declared_.declare("charge", DeclaredTask{{.queue = "payments"}, {}}, reinterpret_cast<const void*>(&charge));
    declared_.declare("twice", DeclaredWorkflow{{.queue = "children"}, {}}, reinterpret_cast<const void*>(&twice));
    execution_.idempotency_key = "order-1";
    execution_.id = *ExecutionId::parse("019bf2d4-0000-7000-8000-000000000001");
    start_over();
  }

  template <class Function>
  static Replay of(Function function) {
    return Replay(workflow_of(std::move(function)));
  }

  // As another worker would: knows nothing but the history.
  void start_over() { run_ = std::make_unique<WorkflowRun>(declared_, function_, stacks_, execution_); }
  void change_code(WorkflowFunction function) {
    run_.reset();
    function_ = std::move(function);
    start_over();
  }

  TurnRequest turn() {
    EXPECT_TRUE(run_->learn(history));
    return run_->advance(now);
  }

  // A turn whose commands are committed.
  TurnRequest committed() {
    TurnRequest turn = this->turn();
    for (const auto& command : turn.commands) add(command.event);
    return turn;
  }

  void add(Event event) {
    event.no = ++last_;
    history.push_back(std::move(event));
  }
  void completes(std::int32_t step, std::optional<std::string> value) {
    Event event = outcome(Event::Kind::closed, step);
    event.status = Status::completed;
    event.value = std::move(value);
    add(event);
  }
  void fails(std::int32_t step, Status status, std::optional<AttemptError> error) {
    Event event = outcome(Event::Kind::closed, step);
    event.status = status;
    event.error = std::move(error);
    add(event);
  }
  void fires(std::int32_t step) { add(outcome(Event::Kind::fired, step)); }
  void signals(std::int32_t step, const std::string& name, const std::string& value) {
    Event event = outcome(Event::Kind::signal, step);
    event.name = name;
    event.value = value;
    add(event);
  }

  WorkflowRun& run() { return *run_; }

  std::vector<Event> history;
  Time now = kNow;

 private:
  static Event outcome(Event::Kind kind, std::int32_t step) {
    Event event;
    event.kind = kind;
    event.step = step;
    return event;
  }

  Declarations declared_;
  WorkflowFunction function_;
  StackPool stacks_{256 * 1024};
  Execution execution_;
  std::int64_t last_ = 0;
  std::unique_ptr<WorkflowRun> run_;
};

inline bool suspended(const TurnRequest& turn) { return std::holds_alternative<Turn::Suspended>(turn.end); }

inline std::string result_of(const TurnRequest& turn) {
  const auto* completed = std::get_if<Turn::Completed>(&turn.end);
  return completed ? completed->result.value_or("nothing") : "not completed";
}

inline std::string failure_of(const TurnRequest& turn) {
  const auto* failed = std::get_if<Turn::Failed>(&turn.end);
  return failed ? failed->error.type + ": " + failed->error.message : "not failed";
}

inline std::string stuck_of(const TurnRequest& turn) {
  const auto* stuck = std::get_if<Turn::Stuck>(&turn.end);
  return stuck ? stuck->error.type + ": " + stuck->error.message : "not stuck";
}

}  // namespace hapax::detail
