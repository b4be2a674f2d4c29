// What one side writes of workflows, the other reads back as the same values.
#include <gtest/gtest.h>

#include "core/failure.h"
#include "support/describe.h"
#include "support/task.h"
#include "wire/error_code.h"
#include "wire/event.h"
#include "wire/read_answer.h"
#include "wire/write_answer.h"

namespace hapax::wire {
namespace {

void write_one_claim(JsonWriter& out, const Claimed& claimed) { write_claim(out, claimed); }

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

template <class Value, class Write, class Read>
auto through(const Value& value, Write write, Read read) {
  JsonWriter out;
  write(out, value);
  return read(parse_json(out.text()));
}

Execution workflow(Status status = Status::suspended) {
  Execution execution;
  execution.id = test_id(1);
  execution.kind = Kind::workflow;
  execution.name_space = "default";
  execution.type = "process_order";
  execution.queue = "orders";
  execution.input_hash = hash_input(execution.input);
  execution.idempotency_key = "order/456 \u00fc";
  execution.created_at = execution.run_at = kNoon;
  execution.status = status;
  execution.run.events = 12;
  execution.run.steps = 4;
  return execution;
}

Event full_event(Event::Kind kind) {
  Event event;
  event.no = 7;
  event.at = kNoon;
  event.kind = kind;
  event.step = 3;
  event.name = "charge \"it\"";
  event.key = "payment-1";
  event.execution = test_id(5);
  event.until = kNoon + 24h;
  event.status = Status::failed;
  event.value = R"({"a":[1,null]})";
  event.error = AttemptError{"Declined", "no funds"};
  return event;
}

TEST(WorkflowRoundTrip, EventsOfEveryKind) {
  for (int kind = 0; kind <= static_cast<int>(Event::Kind::continued); ++kind) {
    const Event full = full_event(static_cast<Event::Kind>(kind));
    EXPECT_EQ(through(full, write_event, read_event), full) << to_string(full.kind);
    Event bare;
    bare.no = 1;
    bare.at = kNoon;
    bare.kind = full.kind;
    EXPECT_EQ(through(bare, write_event, read_event), bare) << to_string(full.kind);
  }
}

TEST(WorkflowRoundTrip, AnEventWithoutAValueIsToldApartFromNull) {
  Event event = full_event(Event::Kind::signal);
  event.value = "null";
  EXPECT_EQ(through(event, write_event, read_event).value, "null");
  event.value.reset();
  EXPECT_EQ(through(event, write_event, read_event).value, std::nullopt);
}

TEST(WorkflowRoundTrip, AWorkflowWithWhatItHasBeyondATask) {
  EXPECT_EQ(through(workflow(), write_execution, read_execution), workflow());
  Execution full = workflow();
  full.parent = test_id(9);
  full.parent_workflow_id = "parent";
  full.step = 2;
  full.run.stuck = 3;
  full.run.wake_at = kNoon + 1h;
  full.run.continued_as = test_id(2);
  EXPECT_EQ(through(full, write_execution, read_execution), full);
}

TEST(WorkflowRoundTrip, AStepSaysWhatItIsCalled) {
  Execution step = workflow();
  step.kind = Kind::task;
  step.parent = test_id(9);
  step.step = 2;
  JsonWriter out;
  write_execution(out, step);
  EXPECT_EQ(parse_json(out.text()).find("name")->text, "task-" + test_id(9).to_string() + ":process_order:2");
}

TEST(WorkflowRoundTrip, AClaimCarriesItsEvents) {
  Claimed claimed{workflow(Status::running), {full_event(Event::Kind::task), full_event(Event::Kind::closed)}};
  claimed.execution.worker = "w";
  claimed.execution.lease_secret = test_secret(3);
  claimed.execution.lease_expires_at = kNoon + 1min;
  claimed.execution.run.seen = 6;
  const Claimed read = through(claimed, write_one_claim, read_claim);
  EXPECT_EQ(read.execution, claimed.execution);
  EXPECT_EQ(read.events, claimed.events);
}

TEST(WorkflowRoundTrip, RefusalsAreNamedAfterWhatIsThere) {
  for (const auto code : {Refusal::Code::task_already_exists, Refusal::Code::task_already_completed}) {
    Refusal refusal;
    refusal.code = code;
    refusal.existing = workflow(Status::completed);
    JsonWriter out;
    write_refusal(out, refusal);
    EXPECT_TRUE(out.text().find("\"WorkflowAlready") != std::string::npos) << out.text();
    const SubmitResult result = read_submit_result(parse_json(out.text()));
    EXPECT_EQ(std::get<Refusal>(result).code, code);
    EXPECT_EQ(std::get<Refusal>(result).existing->kind, Kind::workflow);
  }
}

TEST(WorkflowRoundTrip, ControlOutcomesOfEveryActionAndKind) {
  using Action = ControlRequest::Action;
  for (const Action action : {Action::cancel, Action::resume, Action::fork, Action::signal}) {
    ControlRequest request;
    request.action = action;
    request.workflow_id = "order-456";
    request.fork_workflow_id = "order-457";
    request.from_step = 2;
    request.signal = "approve";
    const auto round = [&](const ControlOutcome& outcome) {
      return through(
          outcome, [&](JsonWriter& out, const ControlOutcome& o) { write_workflow_control(out, request, o); },
          read_control_outcome);
    };
    ControlOutcome done;
    done.changed = true;
    done.status = Status::suspended;
    done.execution = test_id(3);
    EXPECT_EQ(round(done), done);
    for (int kind = 1; kind <= static_cast<int>(ControlOutcome::Kind::key_conflict); ++kind) {
      ControlOutcome refused;
      refused.kind = static_cast<ControlOutcome::Kind>(kind);
      if (refused.kind == ControlOutcome::Kind::identity_taken) refused.other = test_id(2);
      if (refused.kind == ControlOutcome::Kind::no_such_step) refused.steps = 5;
      if (refused.kind == ControlOutcome::Kind::failed_before) refused.before = ControlOutcome::Kind::not_open;
      EXPECT_EQ(round(refused), refused);
    }
  }
}

TEST(WorkflowRoundTrip, TheWordsOfWorkflowsAreReadBack) {
  for (int kind = 1; kind <= static_cast<int>(ControlOutcome::Kind::key_conflict); ++kind) {
    const auto value = static_cast<ControlOutcome::Kind>(kind);
    EXPECT_EQ(parse_control_error(to_string(value, Kind::workflow)), value);
    EXPECT_FALSE(describe(value, "w", Kind::workflow, 3).empty());
  }
}

TEST(WorkflowRoundTrip, WhatIsNoEventIsCorrupt) {
  for (const char* text :
       {"{}", "7", R"({"no":1,"kind":"task"})", R"({"no":1,"at":"2026-01-27T12:00:00.000Z","kind":"x"})",
        R"({"no":"1","at":"2026-01-27T12:00:00.000Z","kind":"task"})"}) {
    try {
      read_event(parse_json(text));
      ADD_FAILURE() << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::corrupt) << text;
    }
  }
}

}  // namespace
}  // namespace hapax::wire
