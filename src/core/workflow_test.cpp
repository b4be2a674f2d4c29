#include "core/workflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using Kind = Event::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

ExecutionId run_id() { return ExecutionId::parse("019bf2d4-0000-7000-8000-000000000001").value(); }

TEST(StepId, IsMadeFromTheNameAlone) {
  EXPECT_EQ(step_name(run_id(), "charge", 3), "task-019bf2d4-0000-7000-8000-000000000001:charge:3");
  EXPECT_EQ(step_id(run_id(), "charge", 3), step_id(run_id(), "charge", 3));
  EXPECT_NE(step_id(run_id(), "charge", 3), step_id(run_id(), "charge", 4));
  EXPECT_NE(step_id(run_id(), "charge", 3), step_id(run_id(), "refund", 3));
}

TEST(StepId, SortsByTheTimeOfItsRun) {
  EXPECT_TRUE(is_step_id(step_id(run_id(), "charge", 1)));
  EXPECT_FALSE(is_step_id(run_id()));
  const std::string id = step_id(run_id(), "charge", 1).to_string();
  EXPECT_EQ(id.substr(0, 13), "019bf2d4-0000");
  EXPECT_EQ(id[14], '8');
}

TEST(ForkId, IsDerivedFromTheRequestKeyAndFitsAWorkflowId) {
  EXPECT_EQ(fork_workflow_id("order-1", "r"), "order-1:fork-r");
  const std::string longest(255, 'w');
  EXPECT_LE(fork_workflow_id(longest, "r").size(), 255U);
  EXPECT_NE(fork_workflow_id(longest, "r"), fork_workflow_id(longest, "s"));
}

TEST(EventKind, HasAWordForEach) {
  for (int kind = 0; kind <= static_cast<int>(Kind::continued); ++kind) {
    const auto value = static_cast<Kind>(kind);
    EXPECT_EQ(parse_event_kind(to_string(value)), value);
  }
  EXPECT_EQ(parse_event_kind("slept"), std::nullopt);
}

class RewindTest : public testing::Test {
 protected:
  Event& add(Kind kind, std::int32_t step) {
    Event event;
    event.no = std::ssize(events_) + 1;
    event.kind = kind;
    event.step = step;
    events_.push_back(event);
    return events_.back();
  }
  void task(std::int32_t step) { add(Kind::task, step); }
  void closed(std::int32_t step, Status status) { add(Kind::closed, step).status = status; }

  std::vector<std::int64_t> kept() {
    std::vector<std::int64_t> numbers;
    for (const Event& event : rewind(events_).kept) numbers.push_back(event.no);
    return numbers;
  }

  std::vector<Event> events_;
};

TEST_F(RewindTest, NothingFailedNothingIsTakenOut) {
  task(1);
  closed(1, Status::completed);
  add(Kind::cancelled, 0);
  EXPECT_FALSE(rewind(events_).changed);
  EXPECT_EQ(rewind(events_).kept, events_);
}

TEST_F(RewindTest, TheFailureThatEndedItIsTakenOutItsStepStays) {
  task(1);
  closed(1, Status::completed);
  task(2);
  closed(2, Status::failed);
  add(Kind::failed, 0);
  EXPECT_THAT(kept(), ElementsAre(1, 2, 3, 5));
}

TEST_F(RewindTest, AFailureThatTheCodeCaughtBeforeStays) {
  task(1);
  closed(1, Status::failed);
  task(2);
  closed(2, Status::timed_out);
  EXPECT_THAT(kept(), ElementsAre(1, 2, 3));
}

TEST_F(RewindTest, OfStepsInParallelAllFailuresAreTakenOut) {
  task(1);
  task(2);
  task(3);
  closed(2, Status::failed);
  closed(1, Status::completed);
  closed(3, Status::cancelled);
  EXPECT_THAT(kept(), ElementsAre(1, 2, 3, 5));
}

TEST_F(RewindTest, ACompensationIsTakenOutWithTheFailureItAnswered) {
  task(1);
  closed(1, Status::completed);
  task(2);
  closed(2, Status::failed);
  task(3);
  closed(3, Status::completed);
  add(Kind::failed, 0).error = AttemptError{"StepFailed", "task 'ship' failed"};
  EXPECT_THAT(kept(), ElementsAre(1, 2, 3, 7));
}

TEST_F(RewindTest, AFailureThatTheCodeDealtWithStaysWhateverEndedItLater) {
  for (const Kind end : {Kind::cancelled, Kind::timed_out, Kind::failed}) {
    events_.clear();
    task(1);
    closed(1, Status::failed);
    task(2);
    closed(2, Status::completed);
    add(end, 0).error = AttemptError{"std::runtime_error", "something else"};
    EXPECT_FALSE(rewind(events_).changed);
  }
}

TEST_F(RewindTest, ASignalThatWasKeptBeforeItsWaitIsKeptOnce) {
  add(Kind::signal, 0).name = "go";
  task(1);
  closed(1, Status::failed);
  add(Kind::wait_signal, 2);
  add(Kind::signal, 2).key = "1";
  add(Kind::failed, 0).error = AttemptError{"StepFailed", ""};
  const Rewound rewound = rewind(events_);
  ASSERT_EQ(rewound.signals.size(), 1U);
  EXPECT_EQ(rewound.signals[0].no, 1);
  EXPECT_THAT(kept(), ElementsAre(1, 2, 6));
}

TEST_F(RewindTest, ASignalWhoseWaitIsTakenOutWaitsAgain) {
  task(1);
  closed(1, Status::failed);
  add(Kind::wait_signal, 2);
  add(Kind::signal, 2).name = "go";
  add(Kind::failed, 0).error = AttemptError{"StepFailed", ""};
  const Rewound rewound = rewind(events_);
  ASSERT_EQ(rewound.signals.size(), 1U);
  EXPECT_EQ(rewound.signals[0].name, "go");
  EXPECT_EQ(rewound.signals[0].step, 0);
  EXPECT_THAT(kept(), ElementsAre(1, 4, 5));
}

}  // namespace
}  // namespace hapax
