// Workflows without their code: turns are written by hand, as the code would have asked.
#pragma once

#include <string>
#include <vector>

#include "conformance/store_test.h"
#include "core/workflow.h"

namespace hapax {

class WorkflowTest : public StoreTest {
 protected:
  Execution start(const std::string& workflow_id = "w") {
    Submission submission = Task("flow").kind(hapax::Kind::workflow).queue("flows");
    submission.execution.idempotency_key = workflow_id;
    submission.execution.identity = workflow_identity("default", workflow_id);
    return submitted(submission);
  }

  ClaimOutcome claim_turns() {
    ClaimRequest request = claim_request({"flows"}, 100);
    request.tasks = false;
    request.workflows = true;
    return store().claim({&request, 1}).at(0);
  }

  // The one turn that is claimable, with its events in events_.
  Execution claim_turn() {
    ClaimOutcome outcome = claim_turns();
    EXPECT_EQ(outcome.executions.size(), 1U);
    EXPECT_EQ(outcome.events.size(), 1U);
    events_ = outcome.events.at(0);
    return outcome.executions.at(0);
  }

  static Turn turn(const Execution& run) {
    Turn turn;
    turn.token = token_of(run);
    turn.seen = run.run.events;
    next_step_ = run.run.steps;
    return turn;
  }
  // By whoever took the last turn, with the end of the step that the run waits for.
  static Turn following(const Execution& run, const Execution& step) {
    Turn turn;
    turn.token = token_of(run);
    turn.step = Report{token_of(step), Report::Completed{"\"done\""}};
    turn.seen = run.run.events + 1;
    next_step_ = run.run.steps;
    return turn;
  }
  static Event command(Turn& turn, Event::Kind kind, const std::string& name = "") {
    Event event;
    event.kind = kind;
    event.step = ++next_step_;
    event.name = name;
    turn.events.push_back(event);
    return event;
  }
  static void ask_task(Turn& turn, Task task) {
    const Submission submission = task;
    const Event event = command(turn, Event::Kind::task, submission.execution.type);
    turn.starts.push_back({event.step, submission});
  }
  static void ask_until(Turn& turn, Event::Kind kind, std::optional<Time> until, const std::string& name = "") {
    command(turn, kind, name);
    turn.events.back().until = until;
  }

  TurnOutcome commit(const Turn& turn) { return store().commit_turns({&turn, 1}).at(0); }

  // A run that has asked for one task of the type "work", which is pending.
  Execution suspended_on_task(Task task = Task()) {
    start();
    Turn first = turn(claim_turn());
    ask_task(first, std::move(task));
    const TurnOutcome outcome = commit(first);
    EXPECT_TRUE(outcome.accepted);
    EXPECT_EQ(outcome.status, Status::suspended);
    return find(first.token.execution).value();
  }

  ControlOutcome on_workflow(ControlRequest::Action action, const std::string& workflow_id = "w",
                             const std::string& key = "") {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = key.empty() ? "key " + std::to_string(++keys_) : key;
    request.action = action;
    request.workflow_id = workflow_id;
    return store().control({&request, 1}).at(0);
  }
  ControlOutcome signal(const std::string& name, const std::string& payload, const std::string& key = "") {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = key.empty() ? "key " + std::to_string(++keys_) : key;
    request.action = ControlRequest::Action::signal;
    request.workflow_id = "w";
    request.signal = name;
    request.payload = payload;
    return store().control({&request, 1}).at(0);
  }
  ControlOutcome fork(std::int32_t from_step, const std::string& workflow_id = "fork") {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = "key " + std::to_string(++keys_);
    request.action = ControlRequest::Action::fork;
    request.workflow_id = "w";
    request.from_step = from_step;
    request.fork_workflow_id = workflow_id;
    request.fork_identity = workflow_identity("default", workflow_id);
    request.fork_id = test_id(5'000'000 + static_cast<std::uint64_t>(keys_));
    return store().control({&request, 1}).at(0);
  }

  std::vector<Event> history(const ExecutionId& run) { return store().history(run, 0, 1000); }
  std::vector<Event::Kind> kinds(const ExecutionId& run) {
    std::vector<Event::Kind> kinds;
    for (const Event& event : history(run)) kinds.push_back(event.kind);
    return kinds;
  }
  static void end_completed(Turn& turn, std::optional<std::string> result = "1") {
    turn.end = Turn::Completed{std::move(result)};
  }

  std::vector<Event> events_;

 private:
  static inline std::int32_t next_step_ = 0;
  int keys_ = 0;
};

}  // namespace hapax
