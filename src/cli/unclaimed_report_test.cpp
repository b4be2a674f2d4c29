#include "cli/unclaimed_report.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

TEST(UnclaimedReport, NamesTheTypesThatNobodyClaims) {
  const Time now = from_ms(3'600'000);
  EXPECT_EQ(judge_unclaimed("default", {}, now).verdict, Finding::Verdict::ok);
  std::vector<Unclaimed> unclaimed(12, {"mail", "send", Kind::workflow, {}, from_ms(0)});
  unclaimed.front() = {"work", "charge", Kind::task, {}, from_ms(0)};
  const Finding finding = judge_unclaimed("default", unclaimed, now);
  EXPECT_EQ(finding.verdict, Finding::Verdict::warn);
  EXPECT_NE(finding.says.find("tasks charge in the queue work (for 60m"), std::string::npos) << finding.says;
  EXPECT_NE(finding.says.find("workflows send in the queue mail"), std::string::npos) << finding.says;
  EXPECT_NE(finding.says.find("and 2 more"), std::string::npos) << finding.says;
}

}  // namespace
}  // namespace hapax
