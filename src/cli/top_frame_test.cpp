#include "cli/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace hapax {
namespace {

using testing::HasSubstr;
using testing::Not;

QueueView queue(std::string name, std::int64_t pending, std::int64_t running) {
  QueueView view;
  view.name = std::move(name);
  view.count.pending = pending;
  view.count.running = running;
  return view;
}

TopSample sample(std::int64_t at_ms, std::vector<QueueView> queues) {
  TopSample sample;
  sample.at = from_ms(at_ms);
  sample.queues = std::move(queues);
  return sample;
}

const TopFrame kFrame{"http://here", "default", 120, 40};

TEST(TopFrame, ShowsQueuesAndHowTheyChange) {
  const auto before = sample(1000, {queue("mail", 100, 1)}), now = sample(3000, {queue("mail", 40, 2)});
  const std::string frame = draw_top(kFrame, now, before, Paint(false));
  EXPECT_THAT(frame, HasSubstr("40 pending, 2 running"));
  EXPECT_THAT(frame, HasSubstr("mail        40       -30        2"));
  EXPECT_THAT(frame, HasSubstr("no failures"));
}

TEST(TopFrame, TheFirstLookHasNoRates) {
  auto now = sample(1000, {queue("mail", 40, 2)});
  now.counters = EngineCounters{};
  EXPECT_THAT(draw_top(kFrame, now, {}, Paint(false)), Not(HasSubstr("per second")));
}

TEST(TopFrame, RatesComeFromTheServersCounters) {
  auto before = sample(1000, {}), now = sample(2000, {});
  before.counters = EngineCounters{};
  now.counters = EngineCounters{};
  now.counters->completed = 120;
  EXPECT_THAT(draw_top(kFrame, now, before, Paint(false)), HasSubstr("120 completed"));
}

TEST(TopFrame, ShowsTypesThatNobodyClaims) {
  auto now = sample(100'000, {});
  EXPECT_THAT(draw_top(kFrame, now, {}, Paint(false)), Not(HasSubstr("nobody claims")));
  for (int i = 0; i < 7; ++i)
    now.unclaimed.push_back({"mail", "type-" + std::to_string(i), Kind::task, {}, from_ms(0)});
  const std::string frame = draw_top(kFrame, now, {}, Paint(false));
  EXPECT_THAT(frame, HasSubstr("nobody claims  kind  queue  waits for"));
  EXPECT_THAT(frame, HasSubstr("type-4         task  mail        100s"));
  EXPECT_THAT(frame, Not(HasSubstr("type-5")));
  EXPECT_THAT(frame, HasSubstr("and 2 more"));
}

TEST(TopFrame, ShowsFailuresWithTheirErrors) {
  auto now = sample(100'000, {});
  Execution failed;
  failed.type = "charge";
  failed.attempt = 3;
  failed.finished_at = from_ms(90'000);
  failed.error = AttemptError{"CardDeclined", "no money\nleft"};
  now.failures.push_back(failed);
  EXPECT_THAT(draw_top(kFrame, now, {}, Paint(false)), HasSubstr("charge  10s         3  CardDeclined: no money left"));
}

TEST(TopFrame, FitsTheTerminal) {
  auto now = sample(1000, {});
  for (int i = 0; i < 100; ++i) now.queues.push_back(queue("q" + std::to_string(i), i, 1));
  for (int i = 0; i < 20; ++i) now.running.emplace_back();
  for (int i = 0; i < 20; ++i) now.failures.emplace_back();
  for (const std::size_t height : {24U, 40U, 60U}) {
    const std::string frame = draw_top({"http://here", "default", 80, height}, now, {}, Paint(false));
    EXPECT_LE(std::count(frame.begin(), frame.end(), '\n'), static_cast<std::ptrdiff_t>(height)) << frame;
  }
}

}  // namespace
}  // namespace hapax
