#include "cli/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using Verdict = Finding::Verdict;
using testing::HasSubstr;

const Time kToday = std::chrono::sys_days(std::chrono::year(2026) / 6 / 1);

TEST(HealthCheck, AClockInThePastFails) {
  EXPECT_EQ(judge_clock(from_ms(0), true).verdict, Verdict::fail);
  EXPECT_EQ(judge_clock(kToday, true).verdict, Verdict::ok);
  EXPECT_EQ(judge_clock(kToday, false).verdict, Verdict::warn);
}

TEST(HealthCheck, FewOpenFilesAreToldWithWhatToDo) {
  EXPECT_EQ(judge_open_files(1024, 1'000'000).verdict, Verdict::ok);
  EXPECT_EQ(judge_open_files(1024, 1024).verdict, Verdict::warn);
  EXPECT_THAT(judge_open_files(256, 256).says, HasSubstr("ulimit"));
}

TEST(HealthCheck, AFullDiskFails) {
  EXPECT_EQ(judge_disk_space(".", 1 << 20).verdict, Verdict::fail);
  EXPECT_EQ(judge_disk_space(".", 500 << 20).verdict, Verdict::warn);
  EXPECT_EQ(judge_disk_space(".", 50ULL << 30).says, "50.0 GiB free in .");
}

TEST(HealthCheck, ADiskThatIsTooSlowOrTooFastToBeTrueIsTold) {
  EXPECT_EQ(judge_sync_rate(".", 40).verdict, Verdict::warn);
  EXPECT_EQ(judge_sync_rate(".", 4000).verdict, Verdict::ok);
  EXPECT_EQ(judge_sync_rate(".", 400'000).verdict, Verdict::warn);
}

TEST(HealthCheck, ADirectoryThatIsNotThereFails) {
  EXPECT_EQ(check_disk_space("/nowhere/at/all").verdict, Verdict::fail);
  EXPECT_EQ(check_sync_rate("/nowhere/at/all").verdict, Verdict::fail);
}

TEST(HealthCheck, SchedulesThatFiredAheadOfTheClockAreNamed) {
  ActivityView well, ahead;
  well.id = "daily";
  ahead.id = "nightly";
  ahead.fired_ahead_until = from_ms(1'769'515'200'000);
  EXPECT_EQ(judge_schedules("default", std::vector{well}).verdict, Finding::Verdict::ok);
  const Finding finding = judge_schedules("default", std::vector{well, ahead});
  EXPECT_EQ(finding.verdict, Finding::Verdict::warn);
  EXPECT_NE(finding.says.find("nightly up to 2026-01-27T12:00:00.000Z"), std::string::npos) << finding.says;
  EXPECT_EQ(finding.says.find("daily"), std::string::npos) << finding.says;
}

}  // namespace
}  // namespace hapax
