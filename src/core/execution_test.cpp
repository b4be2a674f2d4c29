#include "core/execution.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

TEST(Status, WordsAreReadBack) {
  for (Status status : {Status::pending, Status::running, Status::suspended, Status::completed, Status::failed,
                        Status::cancelled, Status::timed_out}) {
    EXPECT_EQ(parse_status(to_string(status)), status);
  }
  EXPECT_EQ(to_string(Status::timed_out), "timed_out");
  EXPECT_EQ(parse_status("done"), std::nullopt);
  EXPECT_EQ(to_string(Kind::task), "task");
  EXPECT_EQ(to_string(Kind::workflow), "workflow");
}

TEST(Status, FourOfThemAreClosed) {
  for (Status status : {Status::pending, Status::running, Status::suspended}) EXPECT_FALSE(is_closed(status));
  for (Status status : {Status::completed, Status::failed, Status::cancelled, Status::timed_out}) {
    EXPECT_TRUE(is_closed(status));
  }
}

TEST(DueAt, APendingExecutionWaitsForItsDeadlineOnly) {
  Execution execution;
  EXPECT_EQ(execution.due_at(), std::nullopt);
  execution.lease_expires_at = kNoon;
  EXPECT_EQ(execution.due_at(), std::nullopt);
  execution.deadline_at = kNoon + 1h;
  EXPECT_EQ(execution.due_at(), kNoon + 1h);
}

TEST(DueAt, ARunningExecutionIsDueAtWhateverEndsFirst) {
  Execution execution;
  execution.status = Status::running;
  execution.lease_expires_at = kNoon + 60s;
  EXPECT_EQ(execution.due_at(), kNoon + 60s);
  execution.attempt_ends_by = kNoon + 50s;
  EXPECT_EQ(execution.due_at(), kNoon + 50s);
  execution.cancel_by = kNoon + 40s;
  EXPECT_EQ(execution.due_at(), kNoon + 40s);
  execution.deadline_at = kNoon + 30s;
  EXPECT_EQ(execution.due_at(), kNoon + 30s);
  execution.deadline_at = kNoon + 90s;
  EXPECT_EQ(execution.due_at(), kNoon + 40s);
}

TEST(DueAt, AClosedExecutionIsNeverDue) {
  Execution execution;
  execution.deadline_at = kNoon;
  for (Status status : {Status::completed, Status::failed, Status::cancelled, Status::timed_out}) {
    execution.status = status;
    EXPECT_EQ(execution.due_at(), std::nullopt);
  }
}

TEST(EffectKey, IsStableOverAttempts) {
  Execution execution;
  execution.id = *ExecutionId::parse("019bff32-8800-7abc-8def-0123456789ab");
  const std::string key = execution.effect_key();
  execution.attempt = 5;
  EXPECT_EQ(execution.effect_key(), key);
}

}  // namespace
}  // namespace hapax
