#include "core/report.h"

#include <gtest/gtest.h>

#include "core/transition.h"

namespace hapax {
namespace {

const Time kNow = from_ms(1'700'000'000'000);
const LeaseSecret kSecret{{1, 2, 3}};

Execution running() {
  Execution execution;
  execution.run_at = kNow;
  start_attempt(execution, "w", kSecret, Duration(60'000), kNow);
  return execution;
}

Report completed(std::optional<std::string> result) { return {{ExecutionId{}, 1, kSecret}, Report::Completed{result}}; }
Report failed(const std::string& message) {
  return {{ExecutionId{}, 1, kSecret}, Report::Failed{{"Error", message}, true}};
}

TEST(Report, TheSameResultAgainIsARepetition) {
  Execution execution = running();
  apply(execution, completed("1"), kNow);
  EXPECT_EQ(check_token(execution, completed("1").token), TokenCheck::repeated);
  EXPECT_TRUE(says_the_same(execution, completed("1")));
}

TEST(Report, AnotherResultUnderTheSameTokenIsNoRepetition) {
  Execution execution = running();
  apply(execution, completed("1"), kNow);
  EXPECT_FALSE(says_the_same(execution, completed("2")));
  EXPECT_FALSE(says_the_same(execution, completed(std::nullopt)));
  EXPECT_FALSE(says_the_same(execution, failed("no")));
}

TEST(Report, AResultAfterAReportedFailureIsNoRepetition) {
  Execution execution = running();
  apply(execution, failed("no"), kNow);
  EXPECT_EQ(execution.status, Status::pending);
  EXPECT_TRUE(says_the_same(execution, failed("no")));
  EXPECT_FALSE(says_the_same(execution, failed("something else")));
  EXPECT_FALSE(says_the_same(execution, completed("1")));
}

}  // namespace
}  // namespace hapax
