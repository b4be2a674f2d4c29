#include "core/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/field.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kId = "report";
const Time kStart = *parse_time("2026-03-01T00:00:00Z");

// A schedule of every minute that is looked at as a server would: its position is stored after each look.
class Schedule {
 public:
  explicit Schedule(CronTrigger settings, std::string_view expression = "* * * * *") : trigger(std::move(settings)) {
    trigger.expression = expression;
    position.handled_until = kStart;
  }

  // One look.
  Plan look(Time now, bool open = false, std::size_t limit = 100) {
    Plan planned = plan(trigger, cron(), zone_, kId, position, now, open, limit);
    position = SchedulePosition::parse(parse_json(planned.next.to_json()));
    EXPECT_EQ(position, planned.next);
    return planned;
  }

  // Looks until nothing more is due, as a server does.
  std::vector<PlannedRun> look_all(Time now, bool open = false, std::size_t limit = 100) {
    std::vector<PlannedRun> runs;
    for (int looks = 0; looks < 10'000; ++looks) {
      const Plan planned = look(now, open, limit);
      EXPECT_LE(planned.runs.size(), limit);
      for (const PlannedRun& run : planned.runs) open = open || run.start;
      runs.insert(runs.end(), planned.runs.begin(), planned.runs.end());
      next_due = planned.next_due;
      if (!next_due || *next_due > now) return runs;
    }
    ADD_FAILURE() << "it never comes to an end";
    return runs;
  }

  Cron cron() const { return std::get<Cron>(Cron::parse(trigger.expression)); }

  CronTrigger trigger;
  SchedulePosition position;
  std::optional<Time> next_due;

 private:
  TimeZone zone_ = *TimeZone::find("UTC");
};

CronTrigger with(MisfirePolicy policy, Overlap overlap = Overlap::allow) {
  CronTrigger trigger;
  trigger.misfire_policy = policy;
  trigger.overlap = overlap;
  return trigger;
}

// "3 ran" and the like: the minute after the start, and what became of it; a star if it is started.
std::vector<std::string> short_of(const std::vector<PlannedRun>& runs) {
  std::vector<std::string> lines;
  for (const PlannedRun& run : runs) {
    const auto minute = std::chrono::floor<std::chrono::minutes>(run.scheduled_for - kStart).count();
    lines.push_back(std::to_string(minute) + " " + std::string(to_string(run.disposition)) + (run.start ? "*" : ""));
  }
  return lines;
}

TEST(Plan, RunsWhatIsDueInTime) {
  Schedule schedule(with(MisfirePolicy::skip));
  EXPECT_THAT(schedule.look(kStart + 59s).runs, IsEmpty());
  const Plan planned = schedule.look(kStart + 60s);
  ASSERT_THAT(short_of(planned.runs), ElementsAre("1 ran*"));
  EXPECT_EQ(planned.runs[0].workflow_id, "activity-report:2026-03-01T00:01:00+00:00");
  EXPECT_EQ(planned.runs[0].why, "");
  EXPECT_EQ(planned.next_due, kStart + 2min);
  EXPECT_THAT(schedule.look(kStart + 60s).runs, IsEmpty());
}

TEST(Plan, FiringIsMissedOnlyLaterThanTheGrace) {
  Schedule in_time(with(MisfirePolicy::skip)), late(with(MisfirePolicy::skip));
  EXPECT_THAT(short_of(in_time.look_all(kStart + 2min)), ElementsAre("1 ran*", "2 ran*"));
  const auto runs = late.look_all(kStart + 2min + 1ms);
  EXPECT_THAT(short_of(runs), ElementsAre("1 skipped", "2 ran*"));
  EXPECT_EQ(runs[0].why, "missed by 1m, more than the grace of 1m");
  EXPECT_EQ(runs[0].workflow_id, "");
}

TEST(Plan, SkipSaysByHowMuchEachWasMissed) {
  Schedule schedule(with(MisfirePolicy::skip));
  const auto runs = schedule.look_all(kStart + 26min + 30s);
  ASSERT_EQ(runs.size(), 26U);
  EXPECT_EQ(runs[0].why, "missed by 25m30s, more than the grace of 1m");
  EXPECT_EQ(short_of(runs)[24], "25 skipped");
  EXPECT_EQ(short_of(runs)[25], "26 ran*");
}

TEST(Plan, CatchupRunsTheLatestOldestFirst) {
  Schedule schedule(with(MisfirePolicy::catchup));
  schedule.trigger.catchup_limit = 3;
  const auto runs = schedule.look_all(kStart + 6min + 30s);
  EXPECT_THAT(short_of(runs),
              ElementsAre("1 skipped", "2 skipped", "3 caught_up*", "4 caught_up*", "5 caught_up*", "6 ran*"));
  EXPECT_THAT(runs[0].why, HasSubstr("only the latest are caught up"));
  EXPECT_EQ(runs[2].why, "missed by 3m30s, more than the grace of 1m");
}

TEST(Plan, CompressStartsOneRunUnderTheLastOnesId) {
  Schedule schedule(with(MisfirePolicy::compress));
  const auto runs = schedule.look_all(kStart + 4min + 30s);
  ASSERT_THAT(short_of(runs), ElementsAre("1 compressed", "2 compressed", "3 compressed*", "4 ran*"));
  EXPECT_EQ(runs[0].workflow_id, "activity-report:2026-03-01T00:03:00+00:00");
  EXPECT_EQ(runs[0].why,
            "missed by 3m30s, more than the grace of 1m; compressed into the run of 2026-03-01T00:03:00+00:00");
  EXPECT_FALSE(runs[0].window);
  EXPECT_EQ(runs[2].workflow_id, runs[0].workflow_id);
  EXPECT_EQ(runs[2].window, (Window{kStart + 1min, kStart + 3min, 3}));
  EXPECT_FALSE(runs[3].window);
}

TEST(Plan, StretchOfMissedFiringsIsStoredBeforeAnyOfItsRowsIsPlanned) {
  Schedule schedule(with(MisfirePolicy::compress));
  const Plan first = schedule.look(kStart + 4min + 30s);
  EXPECT_THAT(first.runs, IsEmpty());
  ASSERT_TRUE(first.next.missed);
  EXPECT_EQ(first.next.missed->until, kStart + 3min);
  EXPECT_EQ(first.next_due, kStart + 4min + 30s);
  // A later check keeps to it, although more is missed by then.
  const auto runs = schedule.look(kStart + 9min + 30s).runs;
  EXPECT_THAT(short_of(runs), ElementsAre("1 compressed", "2 compressed", "3 compressed*"));
  EXPECT_EQ(schedule.position.missed->from, kStart + 4min);
  EXPECT_EQ(schedule.position.missed->until, kStart + 8min);
}

TEST(Plan, DecisionOnAStretchIsTheSameOnEveryServer) {
  for (const auto policy : {MisfirePolicy::catchup, MisfirePolicy::compress}) {
    Schedule one(with(policy));
    one.look(kStart + 40min);
    Schedule other = one;
    const auto short_of_missed = [&](const std::vector<PlannedRun>& runs) {
      auto lines = short_of(runs);
      lines.resize(38);
      return lines;
    };
    EXPECT_EQ(short_of_missed(one.look_all(kStart + 40min)), short_of_missed(other.look_all(kStart + 43min)));
  }
}

TEST(Plan, ServersDownFor25FiringsTellAll25) {
  for (const auto policy : {MisfirePolicy::skip, MisfirePolicy::catchup, MisfirePolicy::compress}) {
    Schedule schedule(with(policy));
    const auto runs = schedule.look_all(kStart + 26min + 59s, false, 7);
    ASSERT_EQ(runs.size(), 26U);
    const auto started = std::count_if(runs.begin(), runs.end() - 1, [](const PlannedRun& run) { return run.start; });
    EXPECT_EQ(started, policy == MisfirePolicy::skip ? 0 : policy == MisfirePolicy::catchup ? 10 : 1);
    if (policy == MisfirePolicy::compress) {
      EXPECT_EQ(runs[24].window, (Window{kStart + 1min, kStart + 25min, 25}));
    }
  }
}

TEST(Plan, FindsTheEndOfALongOutageQuickly) {
  Schedule schedule(with(MisfirePolicy::compress), "* * * * * *");
  const Time now = kStart + std::chrono::days(3650);
  schedule.look(now);
  EXPECT_EQ(schedule.position.missed->until, now - 61s);
  Schedule catchup(with(MisfirePolicy::catchup), "0 0 1 1 *");
  catchup.look(now);
  EXPECT_EQ(catchup.position.missed->until, *parse_time("2036-01-01T00:00:00Z"));
  EXPECT_EQ(catchup.position.missed->caught_up_from, *parse_time("2027-01-01T00:00:00Z"));
}

TEST(Plan, NothingFiresWhilePaused) {
  Schedule schedule(with(MisfirePolicy::skip));
  schedule.position.pause(kStart + 90s);
  const Plan planned = schedule.look(kStart + 10min);
  EXPECT_THAT(planned.runs, IsEmpty());
  EXPECT_EQ(planned.next_due, std::nullopt);
}

TEST(Plan, WhatPassedInAPauseIsMissedWhateverTheGrace) {
  Schedule schedule(with(MisfirePolicy::skip));
  schedule.trigger.misfire_grace = 1h;
  schedule.position.pause(kStart + 90s);
  schedule.position.unpause(kStart + 3min + 30s);
  const auto runs = schedule.look_all(kStart + 4min);
  EXPECT_THAT(short_of(runs), ElementsAre("1 ran*", "2 skipped", "3 skipped", "4 ran*"));
  EXPECT_EQ(runs[1].why, "passed while paused from 2026-03-01T00:01:30.000Z to 2026-03-01T00:03:30.000Z");
  EXPECT_FALSE(schedule.position.paused_from);
}

TEST(Plan, PauseFollowsThePolicy) {
  for (const auto policy : {MisfirePolicy::catchup, MisfirePolicy::compress}) {
    Schedule schedule(with(policy));
    schedule.trigger.misfire_grace = 1h;
    schedule.trigger.catchup_limit = 2;
    schedule.position.pause(kStart + 90s);
    schedule.position.unpause(kStart + 4min + 30s);
    const auto lines = short_of(schedule.look_all(kStart + 5min, false, 1));
    if (policy == MisfirePolicy::catchup) {
      EXPECT_THAT(lines, ElementsAre("1 ran*", "2 skipped", "3 caught_up*", "4 caught_up*", "5 ran*"));
    } else {
      EXPECT_THAT(lines, ElementsAre("1 ran*", "2 compressed", "3 compressed", "4 compressed*", "5 ran*"));
    }
  }
}

TEST(Plan, LateOnesAndAPauseAfterThemAreOneStretch) {
  Schedule schedule(with(MisfirePolicy::compress));
  schedule.position.pause(kStart + 3min + 30s);
  schedule.position.unpause(kStart + 5min + 10s);
  const auto runs = schedule.look_all(kStart + 5min + 20s);
  EXPECT_THAT(short_of(runs),
              ElementsAre("1 compressed", "2 compressed", "3 compressed", "4 compressed", "5 compressed*"));
  EXPECT_EQ(runs[4].window, (Window{kStart + 1min, kStart + 5min, 5}));
}

TEST(Plan, PauseWithNothingInItIsForgotten) {
  Schedule schedule(with(MisfirePolicy::skip));
  schedule.position.pause(kStart + 10s);
  schedule.position.unpause(kStart + 20s);
  schedule.look(kStart + 30s);
  EXPECT_FALSE(schedule.position.paused_from);
  EXPECT_FALSE(schedule.position.paused_to);
}

TEST(Plan, OverlapSkipSkipsWhileARunIsOpen) {
  Schedule schedule(with(MisfirePolicy::skip, Overlap::skip));
  const auto runs = schedule.look_all(kStart + 1min, true);
  ASSERT_THAT(short_of(runs), ElementsAre("1 skipped"));
  EXPECT_EQ(runs[0].why, "the run before it is still open");
  EXPECT_THAT(short_of(schedule.look_all(kStart + 2min, false)), ElementsAre("2 ran*"));
}

TEST(Plan, RunsStartedByTheSameLookCountAsOpen) {
  Schedule schedule(with(MisfirePolicy::catchup, Overlap::skip));
  const auto runs = schedule.look_all(kStart + 3min + 30s);
  EXPECT_THAT(short_of(runs), ElementsAre("1 caught_up*", "2 skipped", "3 skipped"));
  EXPECT_EQ(runs[1].why, "missed by 1m30s, more than the grace of 1m; the run before it is still open");
}

TEST(Plan, BufferOneHoldsOneUntilNoRunIsOpen) {
  Schedule schedule(with(MisfirePolicy::skip, Overlap::buffer_one));
  Plan planned = schedule.look(kStart + 1min, true);
  EXPECT_THAT(planned.runs, IsEmpty());
  ASSERT_TRUE(schedule.position.buffered);
  EXPECT_EQ(planned.next_due, kStart + 61s);
  planned = schedule.look(kStart + 2min, true);
  ASSERT_THAT(short_of(planned.runs), ElementsAre("2 skipped"));
  EXPECT_EQ(planned.runs[0].why,
            "the run before it is still open, and 2026-03-01T00:01:00+00:00 waits for its end already");
  planned = schedule.look(kStart + 2min + 10s, false);
  ASSERT_THAT(short_of(planned.runs), ElementsAre("1 ran*"));
  EXPECT_EQ(planned.runs[0].why, "waited for the end of the run before it");
  EXPECT_EQ(planned.runs[0].workflow_id, "activity-report:2026-03-01T00:01:00+00:00");
  EXPECT_FALSE(schedule.position.buffered);
  EXPECT_EQ(planned.next_due, kStart + 3min);
}

TEST(Plan, CompressedRunIsBufferedWithItsWindow) {
  Schedule schedule(with(MisfirePolicy::compress, Overlap::buffer_one));
  EXPECT_THAT(short_of(schedule.look_all(kStart + 3min + 30s, true)), ElementsAre("1 compressed", "3 skipped"));
  const auto runs = schedule.look_all(kStart + 3min + 40s, false);
  ASSERT_THAT(short_of(runs), ElementsAre("2 compressed*"));
  EXPECT_EQ(runs[0].window, (Window{kStart + 1min, kStart + 2min, 2}));
}

TEST(Plan, CompressSkipsTheWholeStretchWhileARunIsOpen) {
  Schedule schedule(with(MisfirePolicy::compress, Overlap::skip));
  const auto runs = schedule.look_all(kStart + 3min + 30s, true);
  ASSERT_THAT(short_of(runs), ElementsAre("1 skipped", "2 skipped", "3 skipped"));
  EXPECT_THAT(runs[0].why, HasSubstr("not compressed, for a run was still open"));
}

TEST(Plan, BufferedOneStartsWhenOverlapIsAllowedMeanwhile) {
  Schedule schedule(with(MisfirePolicy::skip, Overlap::buffer_one));
  schedule.look(kStart + 1min, true);
  schedule.trigger.overlap = Overlap::allow;
  EXPECT_THAT(short_of(schedule.look(kStart + 70s, true).runs), ElementsAre("1 ran*"));
}

TEST(Plan, AnotherScheduleBeginsNowAndKeepsItsPromises) {
  Schedule schedule(with(MisfirePolicy::compress));
  EXPECT_THAT(short_of(schedule.look(kStart + 10min + 30s).runs), IsEmpty());
  EXPECT_THAT(short_of(schedule.look(kStart + 10min + 30s, false, 2).runs),
              ElementsAre("1 compressed", "2 compressed"));
  schedule.position.begin_anew(kId, kStart + 11min);
  schedule.trigger.expression = "*/5 * * * *";
  const auto runs = schedule.look_all(kStart + 15min);
  ASSERT_THAT(short_of(runs),
              ElementsAre("9 compressed*", "15 ran*"));  // the run that 1 and 2 were said to be compressed into
  EXPECT_EQ(runs[0].window, (Window{kStart + 1min, kStart + 2min, 2}));
}

TEST(Plan, WhatTheScheduleBeforeAChangeMissedIsSkippedByName) {
  Schedule schedule(with(MisfirePolicy::catchup));
  schedule.position.leave(schedule.trigger, kStart + 7min);
  schedule.position.begin_anew(kId, kStart + 7min);
  schedule.trigger.expression = "*/5 * * * *";
  schedule.position = SchedulePosition::parse(parse_json(schedule.position.to_json()));
  EXPECT_THAT(short_of(schedule.look(kStart + 8min, false, 4).runs),
              ElementsAre("1 skipped", "2 skipped", "3 skipped", "4 skipped"));
  const auto runs = schedule.look_all(kStart + 10min);
  ASSERT_THAT(short_of(runs), ElementsAre("5 skipped", "6 skipped", "7 skipped", "10 ran*"));
  EXPECT_THAT(runs[0].why, HasSubstr("the schedule was changed"));
  EXPECT_EQ(schedule.position.former, std::nullopt);
}

TEST(Jitter, IsTheSameForTheSameFiringAndStaysBeforeTheNext) {
  Schedule schedule(with(MisfirePolicy::skip));
  schedule.trigger.jitter = 1h;
  const TimeZone utc = *TimeZone::find("UTC");
  std::set<Duration> seen;
  for (Time time = kStart; time < kStart + 2h; time += 1min) {
    const Duration held = jitter_of(schedule.trigger, schedule.cron(), utc, kId, time);
    EXPECT_EQ(held, jitter_of(schedule.trigger, schedule.cron(), utc, kId, time));
    EXPECT_GE(held, 0ms);
    EXPECT_LT(held, 1min);
    seen.insert(held);
  }
  EXPECT_GT(seen.size(), 100U);
  EXPECT_NE(jitter_of(schedule.trigger, schedule.cron(), utc, kId, kStart),
            jitter_of(schedule.trigger, schedule.cron(), utc, "other", kStart));
}

TEST(Jitter, HoldsAFiringBackAndMovesItsGrace) {
  Schedule schedule(with(MisfirePolicy::skip), "0 * * * *");
  schedule.trigger.jitter = 30min;
  const Time firing = kStart + 1h;
  const Duration held = jitter_of(schedule.trigger, schedule.cron(), *TimeZone::find("UTC"), kId, firing);
  ASSERT_GT(held, 60s);
  const Plan early = schedule.look(firing + held - 1ms);
  EXPECT_THAT(early.runs, IsEmpty());
  EXPECT_EQ(early.next_due, firing + held);
  const auto runs = schedule.look(firing + held + 60s).runs;
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].disposition, Disposition::ran);
  EXPECT_EQ(runs[0].scheduled_for, firing);
}

TEST(SchedulePosition, IsWrittenAndReadBack) {
  SchedulePosition position;
  position.handled_until = kStart;
  EXPECT_EQ(position.to_json(), R"({"handled_until":"2026-03-01T00:00:00.000Z"})");
  position.pause(kStart + 1s);
  position.unpause(kStart + 2s);
  position.missed = {MisfirePolicy::catchup, kStart, kStart + 3s, kStart + 2s, 7, true};
  position.buffered = {kStart, Disposition::compressed, true, "activity-a:b", Window{kStart, kStart + 1s, 4}, "why"};
  EXPECT_EQ(SchedulePosition::parse(parse_json(position.to_json())), position);
  EXPECT_THROW(SchedulePosition::parse(parse_json("{}")), InvalidField);
}

TEST(SchedulePosition, PauseBeforeAnEarlierOneIsDealtWithMakesThemOne) {
  SchedulePosition position;
  position.pause(kStart + 1s);
  position.pause(kStart + 2s);
  EXPECT_TRUE(position.paused());
  position.unpause(kStart + 3s);
  position.unpause(kStart + 4s);
  EXPECT_FALSE(position.paused());
  EXPECT_EQ(position.paused_to, kStart + 3s);
  position.pause(kStart + 5s);
  EXPECT_TRUE(position.paused());
  EXPECT_EQ(position.paused_from, kStart + 1s);
}

}  // namespace
}  // namespace hapax
