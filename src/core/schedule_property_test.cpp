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
      if (planned.runs.empty() && (!due || *due > now)) return;
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

// An outage, and then servers that handle it: each look and each carrying out takes its time, some die half-way and
// another one takes over. The clock goes on all the while, and so does the schedule.
struct Outage : Story {
  Time end = kStart;         // the first look after the outage
  std::vector<Time> missed;  // what the first look found late

  explicit Outage(std::uint64_t seed) : Story(seed) {
    constexpr std::array<const char*, 4> kOften{"* * * * * *", "*/3 * * * * *", "*/10 * * * * *", "* * * * *"};
    trigger.expression = kOften.at(below(kOften.size()));
    cron = std::get<Cron>(Cron::parse(trigger.expression));
    trigger.misfire_policy = static_cast<MisfirePolicy>(below(3));
    trigger.overlap = Overlap::allow;
    trigger.misfire_grace = Duration(below(3) * 1000 * below(40));
    trigger.jitter = Duration(below(2) * below(5000));
    end = now = kStart + trigger.misfire_grace + Duration(70'000 + below(7'200'000));
    for (auto time = cron.next(kStart, zone); time && *time < end; time = cron.next(*time, zone)) {
      const Time fell_due = *time + jitter_of(trigger, cron, zone, kId, *time);
      if (end - fell_due > trigger.misfire_grace) missed.push_back(*time);
    }
  }

  // As long as it takes, up to what counts as silence.
  void take_time(std::uint64_t longest_ms) { now += Duration(below(2) == 0 ? below(50) : below(longest_ms)); }

  void handle() {
    const auto silence = static_cast<std::uint64_t>(std::max(trigger.misfire_grace, kLongestSilence).count());
    const std::uint64_t slow = below(2) == 0 ? 200 : silence;
    const std::uint64_t most_rows = below(2) == 0 ? 20 : 500;
    for (int looks = 0; looks < 20; ++looks) {
      const Plan planned = plan_at(now, false, 1 + below(most_rows));
      for (const PlannedRun& run : planned.runs) {
        ASSERT_TRUE(ledger.emplace(run.scheduled_for, run).second) << format_time(run.scheduled_for) << " came twice";
      }
      position = SchedulePosition::parse(parse_json(planned.next.to_json()));
      if (!planned.runs.empty()) {
        for (auto deaths = below(3); deaths > 0; --deaths) {
          take_time(silence);
          position.take_over(trigger, now);
        }
        take_time(10 * slow);  // nothing limits how long one server carries it out
        position.carried_out(now);
      }
      if (planned.next_due > now) return;  // it has caught up: the outage is over
      take_time(slow);
    }
    finish_looking();  // servers that stay slow might never come to an end
  }
};

TEST(PlanProperty, OneOutageIsOneStretchHoweverLongItsHandlingTakes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Outage story(seed);
    story.handle();
    if (testing::Test::HasFatalFailure()) return;
    const std::size_t limit = static_cast<std::size_t>(story.trigger.catchup_limit);
    std::map<Disposition, std::size_t> rows;
    std::size_t compressed_runs = 0;
    for (const auto& [time, run] : story.ledger) {
      ++rows[run.disposition];
      compressed_runs += run.disposition == Disposition::compressed && run.start ? 1 : 0;
      ASSERT_TRUE(time > story.missed.back() ? run.disposition == Disposition::ran
                                             : run.disposition != Disposition::ran)
          << format_time(time) << ": " << to_string(run.disposition) << ", " << run.why;
    }
    switch (story.trigger.misfire_policy) {
      case MisfirePolicy::skip: ASSERT_EQ(rows[Disposition::skipped], story.missed.size()); break;
      case MisfirePolicy::catchup:
        ASSERT_EQ(rows[Disposition::caught_up], std::min(limit, story.missed.size()));
        ASSERT_EQ(rows[Disposition::skipped] + rows[Disposition::caught_up], story.missed.size());
        break;
      case MisfirePolicy::compress:
        ASSERT_EQ(compressed_runs, 1U);
        ASSERT_EQ(rows[Disposition::compressed], story.missed.size());
        break;
    }
    check_windows(story);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hapax
