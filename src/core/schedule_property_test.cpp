// Random schedules, looked at at random times with random limits: each firing gets exactly one row.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "core/schedule.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kId = "a";
const Time kStart = *parse_time("2026-03-28T00:00:00Z");  // a day before the clocks change in Berlin

struct Story {
  std::mt19937_64 random;
  CronTrigger trigger;
  Cron cron;
  TimeZone zone;
  SchedulePosition position;
  Time now = kStart;
  std::map<Time, PlannedRun> ledger;

  explicit Story(std::uint64_t seed) : random(seed), cron(make_cron()), zone(*TimeZone::find("Europe/Berlin")) {
    trigger.misfire_policy = static_cast<MisfirePolicy>(below(3));
    trigger.overlap = static_cast<Overlap>(below(3));
    trigger.catchup_limit = 1 + static_cast<std::int32_t>(below(20));
    trigger.misfire_grace = Duration(below(2) * 1000 * below(300));
    if (below(2) == 0) trigger.jitter = Duration(below(7'200'000));
    position.handled_until = kStart;
  }

  std::uint64_t below(std::uint64_t limit) { return random() % limit; }

  Cron make_cron() {
    constexpr std::array<const char*, 6> kExpressions{"*/10 * * * * *", "* * * * *",   "*/7 * * * *",
                                                      "30 2 * * *",     "0 */3 * * *", "*/15 2,9-10 * * 0,6"};
    trigger.expression = kExpressions.at(below(kExpressions.size()));
    return std::get<Cron>(Cron::parse(trigger.expression));
  }

  Plan plan_at(Time time, bool open, std::size_t limit) {
    return plan(trigger, cron, zone, kId, position, time, open, limit);
  }

  // A look as a server does it, with the ledger's first row holding.
  void look() {
    const std::size_t limit = 1 + below(30);
    const bool open = below(3) == 0;
    const Plan planned = plan_at(now, open, limit);
    ASSERT_LE(planned.runs.size(), limit);
    for (const PlannedRun& run : planned.runs) {
      ASSERT_LE(run.scheduled_for, now);
      ASSERT_TRUE(ledger.emplace(run.scheduled_for, run).second) << format_time(run.scheduled_for) << " came twice";
      // Whether a stretch is compressed at all was settled by an earlier look, at which no run was open.
      const bool settled = run.disposition == Disposition::compressed && trigger.overlap == Overlap::skip;
      ASSERT_FALSE(run.start && open && trigger.overlap != Overlap::allow && !settled);
    }
    ASSERT_GE(planned.next.handled_until, position.handled_until);
    position = planned.next;
    due = planned.next_due;
  }

  void finish_looking() {
    for (int looks = 0; looks < 100'000; ++looks) {
      const Plan planned = plan_at(now, false, 50);
      for (const PlannedRun& run : planned.runs) {
        ASSERT_TRUE(ledger.emplace(run.scheduled_for, run).second) << format_time(run.scheduled_for) << " came twice";
      }
      position = planned.next;
      due = planned.next_due;
      if (!due || *due > now) return;
    }
    FAIL() << "it never comes to an end";
  }

  void tell() {
    for (int step = 0; step < 30 && !testing::Test::HasFatalFailure(); ++step) {
      now += Duration(below(below(4) == 0 ? 7'200'000 : 120'000));
      if (below(10) == 0) position.pause(now);
      if (below(4) == 0) position.unpause(now);
      look();
    }
    position.unpause(now);
    while (!testing::Test::HasFatalFailure()) {  // until the buffered one has its row, too
      finish_looking();
      if (!position.buffered) break;
      now += 1s;
    }
  }

  std::optional<Time> due;
};

void check_windows(const Story& story) {
  std::map<std::string, std::int64_t> compressed;
  for (const auto& [time, run] : story.ledger) {
    if (run.disposition == Disposition::compressed) ++compressed[run.workflow_id];
  }
  for (const auto& [time, run] : story.ledger) {
    const std::string own = activity_workflow_id(kId, format_occurrence(time));
    EXPECT_EQ(run.start, run.workflow_id == own) << format_time(time);
    EXPECT_EQ(run.workflow_id.empty(), run.disposition == Disposition::skipped);
    EXPECT_FALSE(run.disposition == Disposition::skipped && run.why.empty());
    if (run.disposition != Disposition::compressed) {
      EXPECT_FALSE(run.window);
      continue;
    }
    ASSERT_EQ(run.start, run.window.has_value());
    if (!run.start) continue;
    EXPECT_EQ(run.window->missed, compressed[own]) << format_time(time);
    EXPECT_EQ(run.window->to, time);
    EXPECT_TRUE(story.ledger.contains(run.window->from));
    compressed.erase(own);
  }
  EXPECT_TRUE(compressed.empty()) << "compressed into a run that was never started";
}

TEST(PlanProperty, EachFiringGetsExactlyOneRowWhateverTheLooks) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story story(seed);
    story.tell();
    if (testing::Test::HasFatalFailure()) return;
    std::size_t firings = 0;
    for (auto time = story.cron.next(kStart, story.zone); time && *time <= story.position.handled_until;
         time = story.cron.next(*time, story.zone)) {
      ++firings;
      ASSERT_TRUE(story.ledger.contains(*time)) << format_time(*time) << " has no row";
    }
    ASSERT_EQ(story.ledger.size(), firings);
    ASSERT_TRUE(!story.due || *story.due > story.now);
    check_windows(story);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PlanProperty, LimitsOfTheLooksChangeNothing) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story at_once(seed);
    at_once.trigger.overlap = Overlap::allow;
    at_once.position.pause(kStart + Duration(at_once.below(3'600'000)));
    at_once.position.unpause(at_once.position.paused_from.value() + Duration(at_once.below(3'600'000)));
    at_once.now = *at_once.position.paused_to + Duration(at_once.below(14'400'000));
    Story in_parts = at_once;
    at_once.finish_looking();
    for (int looks = 0; looks < 200; ++looks) in_parts.look();
    in_parts.finish_looking();
    ASSERT_EQ(at_once.ledger, in_parts.ledger);
    ASSERT_EQ(at_once.position, in_parts.position);
  }
}

}  // namespace
}  // namespace hapax
