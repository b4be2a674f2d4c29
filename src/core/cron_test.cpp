#include "core/cron.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace hapax {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Cron cron(std::string_view expression) {
  auto parsed = Cron::parse(expression);
  if (const auto* bad = std::get_if<Cron::Bad>(&parsed)) throw std::runtime_error(bad->message);
  return std::get<Cron>(parsed);
}

std::string error_of(std::string_view expression) {
  auto parsed = Cron::parse(expression);
  const auto* bad = std::get_if<Cron::Bad>(&parsed);
  return bad == nullptr ? "" : bad->message;
}

// The next firings in UTC, without the parts that are always the same.
std::vector<std::string> next(std::string_view expression, std::string_view after, int count = 3) {
  const Cron schedule = cron(expression);
  const TimeZone utc = *TimeZone::find("UTC");
  std::optional<Time> time = parse_time(after);
  std::vector<std::string> firings;
  while (count-- > 0 && (time = schedule.next(*time, utc))) firings.push_back(format_time(*time).substr(0, 19));
  return firings;
}

constexpr std::string_view kNewYear = "2026-01-01T00:00:00Z";  // a Thursday

TEST(Cron, FiresAfterAnInstantAndNeverAtIt) {
  EXPECT_THAT(next("0 9 * * *", "2026-01-01T08:59:59.999Z", 1), ElementsAre("2026-01-01T09:00:00"));
  EXPECT_THAT(next("0 9 * * *", "2026-01-01T09:00:00Z", 1), ElementsAre("2026-01-02T09:00:00"));
  EXPECT_THAT(next("0 9 * * *", "2026-01-01T09:00:00.001Z", 1), ElementsAre("2026-01-02T09:00:00"));
}

TEST(Cron, TakesStepsRangesAndLists) {
  EXPECT_THAT(next("*/20 * * * *", kNewYear),
              ElementsAre("2026-01-01T00:20:00", "2026-01-01T00:40:00", "2026-01-01T01:00:00"));
  EXPECT_THAT(next("5/25 * * * *", kNewYear),
              ElementsAre("2026-01-01T00:05:00", "2026-01-01T00:30:00", "2026-01-01T00:55:00"));
  EXPECT_THAT(next("10-20/5 3 * * *", kNewYear),
              ElementsAre("2026-01-01T03:10:00", "2026-01-01T03:15:00", "2026-01-01T03:20:00"));
  EXPECT_THAT(next("0 8,12-13 * * *", kNewYear),
              ElementsAre("2026-01-01T08:00:00", "2026-01-01T12:00:00", "2026-01-01T13:00:00"));
}

TEST(Cron, TakesTheSecondAsTheFirstOfSixFields) {
  EXPECT_THAT(next("*/30 * * * * *", kNewYear),
              ElementsAre("2026-01-01T00:00:30", "2026-01-01T00:01:00", "2026-01-01T00:01:30"));
  EXPECT_THAT(next("15 30 9 * * *", kNewYear, 1), ElementsAre("2026-01-01T09:30:15"));
}

TEST(Cron, TakesNamesInAnyCase) {
  EXPECT_THAT(next("0 0 1 feb,Jul *", kNewYear, 2), ElementsAre("2026-02-01T00:00:00", "2026-07-01T00:00:00"));
  EXPECT_THAT(next("0 0 * * SAT-sun", kNewYear),
              ElementsAre("2026-01-03T00:00:00", "2026-01-04T00:00:00", "2026-01-10T00:00:00"));
}

TEST(Cron, CountsSundayAsZeroAndAsSeven) {
  for (const char* sunday : {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun"}) {
    EXPECT_THAT(next(sunday, kNewYear, 2), ElementsAre("2026-01-04T00:00:00", "2026-01-11T00:00:00")) << sunday;
  }
  EXPECT_THAT(next("0 0 * * 5-7", kNewYear, 4),
              ElementsAre("2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00", "2026-01-09T00:00:00"));
  EXPECT_THAT(next("0 0 * * 1/2", kNewYear),
              ElementsAre("2026-01-02T00:00:00", "2026-01-05T00:00:00", "2026-01-07T00:00:00"));
}

TEST(Cron, TakesNicknames) {
  EXPECT_THAT(next("@hourly", kNewYear, 1), ElementsAre("2026-01-01T01:00:00"));
  EXPECT_THAT(next("@daily", kNewYear, 1), ElementsAre("2026-01-02T00:00:00"));
  EXPECT_THAT(next("@midnight", kNewYear, 1), ElementsAre("2026-01-02T00:00:00"));
  EXPECT_THAT(next(" @Weekly ", kNewYear, 1), ElementsAre("2026-01-04T00:00:00"));
  EXPECT_THAT(next("@monthly", kNewYear, 1), ElementsAre("2026-02-01T00:00:00"));
  EXPECT_THAT(next("@yearly", kNewYear, 1), ElementsAre("2027-01-01T00:00:00"));
  EXPECT_THAT(next("@annually", kNewYear, 1), ElementsAre("2027-01-01T00:00:00"));
}

TEST(Cron, FindsTheLastDayOfAMonth) {
  EXPECT_THAT(next("0 0 L * *", "2028-01-15T00:00:00Z"),
              ElementsAre("2028-01-31T00:00:00", "2028-02-29T00:00:00", "2028-03-31T00:00:00"));
  EXPECT_THAT(next("0 0 15,L * *", kNewYear),
              ElementsAre("2026-01-15T00:00:00", "2026-01-31T00:00:00", "2026-02-15T00:00:00"));
}

TEST(Cron, FindsTheLastAndTheNthWeekdayOfAMonth) {
  EXPECT_THAT(next("0 0 * * 5L", kNewYear),
              ElementsAre("2026-01-30T00:00:00", "2026-02-27T00:00:00", "2026-03-27T00:00:00"));
  EXPECT_THAT(next("0 0 * * friL", kNewYear, 1), ElementsAre("2026-01-30T00:00:00"));
  EXPECT_THAT(next("0 0 * * 5#3", kNewYear),
              ElementsAre("2026-01-16T00:00:00", "2026-02-20T00:00:00", "2026-03-20T00:00:00"));
  EXPECT_THAT(next("0 0 * * sun#5", kNewYear),
              ElementsAre("2026-03-29T00:00:00", "2026-05-31T00:00:00", "2026-08-30T00:00:00"));
  EXPECT_THAT(next("0 0 * * 1#1,3L", kNewYear),
              ElementsAre("2026-01-05T00:00:00", "2026-01-28T00:00:00", "2026-02-02T00:00:00"));
}

TEST(Cron, TakesADayThatMatchesEitherFieldIfNeitherIsAStar) {
  EXPECT_THAT(next("0 0 13 * 5", kNewYear, 4),
              ElementsAre("2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00", "2026-01-16T00:00:00"));
  EXPECT_THAT(next("0 0 13 * ?", kNewYear, 2), ElementsAre("2026-01-13T00:00:00", "2026-02-13T00:00:00"));
  EXPECT_THAT(next("0 0 ? * 5", kNewYear, 2), ElementsAre("2026-01-02T00:00:00", "2026-01-09T00:00:00"));
  EXPECT_THAT(next("0 0 1-31 * 5", kNewYear, 2), ElementsAre("2026-01-02T00:00:00", "2026-01-03T00:00:00"));
}

TEST(Cron, WaitsForRareDays) {
  EXPECT_THAT(next("0 0 29 2 *", "2096-03-01T00:00:00Z", 1), ElementsAre("2104-02-29T00:00:00"));
  EXPECT_THAT(next("0 0 * 2 sun#5", "2088-03-01T00:00:00Z", 1), ElementsAre("2128-02-29T00:00:00"));
  EXPECT_TRUE(next("0 0 * 2 sun#5", "9990-01-01T00:00:00Z", 1).empty());
}

TEST(Cron, RefusesWhatNeverFires) {
  EXPECT_EQ(error_of("0 0 30 2 *"), "never fires: no month of '2' has a day '30'");
  EXPECT_EQ(error_of("0 0 31 apr,jun *"), "never fires: no month of 'apr,jun' has a day '31'");
  EXPECT_EQ(error_of("0 0 30 2 1"), "");
}

TEST(Cron, SaysWhichFieldIsWrongAndWhatIsAllowed) {
  EXPECT_EQ(error_of("60 * * * *"), "the minute '60' is wrong: '60' must be 0 to 59");
  EXPECT_EQ(error_of("61 * * * * *"), "the second '61' is wrong: '61' must be 0 to 59");
  EXPECT_EQ(error_of("0 24 * * *"), "the hour '24' is wrong: '24' must be 0 to 23");
  EXPECT_EQ(error_of("0 0 0 * *"), "the day of month '0' is wrong: '0' must be 1 to 31, or L for the last");
  EXPECT_EQ(error_of("0 0 15W * *"), "the day of month '15w' is wrong: '15w' must be 1 to 31, or L for the last");
  EXPECT_EQ(error_of("0 0 * 13 *"), "the month '13' is wrong: '13' must be 1 to 12, or jan to dec");
  EXPECT_THAT(error_of("0 0 * * monday"), HasSubstr("the day of week 'monday' is wrong: 'monday' must be 0 to 7"));
  EXPECT_THAT(error_of("0 0 * * L"), HasSubstr("the day of week 'l' is wrong"));
  EXPECT_EQ(error_of("0 0 * * 5#6"), "the day of week '5#6' is wrong: the number after # must be 1 to 5");
  EXPECT_EQ(error_of("*/90 * * * *"), "the minute '*/90' is wrong: the step must be 1 to 59");
  EXPECT_EQ(error_of("*/0 * * * *"), "the minute '*/0' is wrong: the step must be 1 to 59");
}

TEST(Cron, RefusesARangeThatRunsBackwardsAndSaysWhatToWrite) {
  EXPECT_EQ(error_of("0 22-2 * * *"), "the hour '22-2' is wrong: a range must not run backwards; write 22-23,0-2");
  EXPECT_EQ(error_of("0 0 * nov-feb *"),
            "the month 'nov-feb' is wrong: a range must not run backwards; write 11-12,1-2");
}

TEST(Cron, RefusesWhatIsNoExpression) {
  EXPECT_THAT(error_of(""), AllOf(HasSubstr("must have five fields"), HasSubstr("it has 0")));
  EXPECT_THAT(error_of("* * * *"), HasSubstr("it has 4"));
  EXPECT_THAT(error_of("* * * * * * *"), HasSubstr("it has 7"));
  EXPECT_THAT(error_of("@never"), HasSubstr("'@never' is not known; known are @yearly"));
  for (const char* bad :
       {", * * * *", "1,,2 * * * *", "1- * * * *", "-1 * * * *", "1-2-3 * * * *", "*/ * * * *", "1/2/3 * * * *",
        "** * * * *", "? * * * *", "0 0 ?,1 * *", "+1 * * * *", "0x1 * * * *", "0 0 * * #1", "0 0 * * 1#", "0 0 * * l",
        "0 0 l-1 * *", "99999999999999999999 * * * *", "\xC3\xA9 * * * *"}) {
    EXPECT_NE(error_of(bad), "") << bad;
  }
  EXPECT_THAT(error_of(std::string(2000, '1')), HasSubstr("at most 1000 bytes"));
}

// ---- daylight saving

struct Change {
  const char* what;
  const char* zone;
  const char* expression;
  const char* after;
  std::vector<std::string> firings;  // UTC
};

class DaylightSaving : public testing::TestWithParam<Change> {};

TEST_P(DaylightSaving, FiresAsTheTableSays) {
  const Change& change = GetParam();
  const Cron schedule = cron(change.expression);
  const auto zone = TimeZone::find(change.zone);
  ASSERT_TRUE(zone);
  std::optional<Time> time = parse_time(change.after);
  for (const std::string& expected : change.firings) {
    time = schedule.next(*time, *zone);
    ASSERT_TRUE(time);
    EXPECT_EQ(format_time(*time).substr(0, 16) + "Z", expected) << change.what;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, DaylightSaving,
    testing::Values(
        // Europe/Berlin: on 2026-03-29 01:00Z 02:00 becomes 03:00; on 2026-10-25 01:00Z 03:00 becomes 02:00.
        Change{"a time in the gap fires at its end",
               "Europe/Berlin",
               "30 2 * * *",
               "2026-03-28T00:00:00Z",
               {"2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"}},
        Change{"the end of the gap itself",
               "Europe/Berlin",
               "0 3 * * *",
               "2026-03-28T12:00:00Z",
               {"2026-03-29T01:00Z", "2026-03-30T01:00Z"}},
        Change{"several times in the gap are one firing",
               "Europe/Berlin",
               "0,20,40 2,3 * * *",
               "2026-03-29T00:00:00Z",
               {"2026-03-29T01:00Z", "2026-03-29T01:20Z", "2026-03-29T01:40Z", "2026-03-30T00:00Z"}},
        Change{"every quarter of an hour in spring",
               "Europe/Berlin",
               "*/15 * * * *",
               "2026-03-29T00:40:00Z",
               {"2026-03-29T00:45Z", "2026-03-29T01:00Z", "2026-03-29T01:15Z"}},
        Change{"hourly at :30 in spring: 02:30 at the end of the gap, then 03:30",
               "Europe/Berlin",
               "30 * * * *",
               "2026-03-29T00:00:00Z",
               {"2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z", "2026-03-29T02:30Z"}},
        Change{"a repeated time fires the first time only",
               "Europe/Berlin",
               "30 2 * * *",
               "2026-10-24T00:00:00Z",
               {"2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"}},
        Change{"a time after the repeated hour",
               "Europe/Berlin",
               "0 3 * * *",
               "2026-10-24T12:00:00Z",
               {"2026-10-25T02:00Z", "2026-10-26T02:00Z"}},
        Change{"the first repeated minute",
               "Europe/Berlin",
               "0 2 * * *",
               "2026-10-24T12:00:00Z",
               {"2026-10-25T00:00Z", "2026-10-26T01:00Z"}},
        Change{"every quarter of an hour in autumn: none in the repeated hour",
               "Europe/Berlin",
               "*/15 * * * *",
               "2026-10-25T00:40:00Z",
               {"2026-10-25T00:45Z", "2026-10-25T02:00Z", "2026-10-25T02:15Z"}},
        Change{"hourly in autumn: two hours between",
               "Europe/Berlin",
               "0 * * * *",
               "2026-10-24T23:30:00Z",
               {"2026-10-25T00:00Z", "2026-10-25T02:00Z", "2026-10-25T03:00Z"}},
        Change{"asked within the repeated hour",
               "Europe/Berlin",
               "30 2 * * *",
               "2026-10-25T01:10:00Z",
               {"2026-10-26T01:30Z"}},

        // America/New_York: on 2026-03-08 07:00Z 02:00 becomes 03:00; on 2026-11-01 06:00Z 02:00 becomes 01:00.
        Change{"a time in the gap",
               "America/New_York",
               "30 2 * * *",
               "2026-03-07T12:00:00Z",
               {"2026-03-08T07:00Z", "2026-03-09T06:30Z"}},
        Change{"a repeated time",
               "America/New_York",
               "30 1 * * *",
               "2026-10-31T12:00:00Z",
               {"2026-11-01T05:30Z", "2026-11-02T06:30Z"}},
        Change{"every half hour in autumn",
               "America/New_York",
               "*/30 * * * *",
               "2026-11-01T05:00:00Z",
               {"2026-11-01T05:30Z", "2026-11-01T07:00Z", "2026-11-01T07:30Z"}},
        Change{"every half hour in spring",
               "America/New_York",
               "*/30 * * * *",
               "2026-03-08T06:00:00Z",
               {"2026-03-08T06:30Z", "2026-03-08T07:00Z", "2026-03-08T07:30Z"}},

        // Australia/Lord_Howe, half an hour: on 2026-10-03 15:30Z 02:00 becomes 02:30; on 2026-04-04 15:00Z 02:00
        // becomes 01:30.
        Change{"a time in the gap of half an hour",
               "Australia/Lord_Howe",
               "15 2 * * *",
               "2026-10-02T20:00:00Z",
               {"2026-10-03T15:30Z", "2026-10-04T15:15Z"}},
        Change{"a time after the gap of half an hour",
               "Australia/Lord_Howe",
               "45 2 * * *",
               "2026-10-02T20:00:00Z",
               {"2026-10-03T15:45Z", "2026-10-04T15:45Z"}},
        Change{"every quarter of an hour in spring",
               "Australia/Lord_Howe",
               "*/15 * * * *",
               "2026-10-03T15:00:00Z",
               {"2026-10-03T15:15Z", "2026-10-03T15:30Z", "2026-10-03T15:45Z", "2026-10-03T16:00Z"}},
        Change{"a time repeated after half an hour",
               "Australia/Lord_Howe",
               "45 1 * * *",
               "2026-04-03T20:00:00Z",
               {"2026-04-04T14:45Z", "2026-04-05T15:15Z"}},
        Change{"every quarter of an hour in autumn",
               "Australia/Lord_Howe",
               "*/15 * * * *",
               "2026-04-04T14:30:00Z",
               {"2026-04-04T14:45Z", "2026-04-04T15:30Z", "2026-04-04T15:45Z"}},

        // A day that does not exist: Samoa went from 29 to 31 December 2011 at 10:00Z.
        Change{"a day in the gap", "Pacific/Apia", "0 9 30 12 *", "2011-12-01T00:00:00Z", {"2011-12-30T10:00Z"}}));

TEST(TimeZone, KnowsNamesOfTheDatabaseOnly) {
  EXPECT_TRUE(TimeZone::find("Europe/Berlin"));
  EXPECT_TRUE(TimeZone::find("UTC"));
  EXPECT_EQ(TimeZone::find("Asia/Kathmandu")->name(), "Asia/Kathmandu");
  for (const char* none :
       {"", "Europe/Bonn", "europe/berlin", "localtime", "../etc/passwd", "/etc/localtime", "CEST+1"}) {
    EXPECT_FALSE(TimeZone::find(none)) << none;
  }
}

TEST(TimeZone, FirstFromIsTheInverseOfToTime) {
  for (const char* name :
       {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"}) {
    const TimeZone zone = *TimeZone::find(name);
    for (auto time = std::chrono::floor<std::chrono::seconds>(*parse_time("2011-12-01T00:00:00Z"));
         time < *parse_time("2013-12-01T00:00:00Z"); time += std::chrono::minutes(15)) {
      const auto local = zone.first_from(time);
      ASSERT_GE(zone.to_time(local), time) << name << " " << format_time(time);
      ASSERT_LT(zone.to_time(local - std::chrono::seconds(1)), time) << name << " " << format_time(time);
    }
  }
}

}  // namespace
}  // namespace hapax
