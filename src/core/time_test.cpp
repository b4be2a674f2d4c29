#include "core/time.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, EveryUnitIsRead) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("12h"), 12h);
  EXPECT_EQ(parse_duration("7d"), std::chrono::days(7));
  EXPECT_EQ(parse_duration("2w"), std::chrono::days(14));
  EXPECT_EQ(parse_duration("0"), 0ms);
  EXPECT_EQ(parse_duration("0s"), 0ms);
}

TEST(DurationText, SeveralUnitsAddUp) {
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1d2h3m4s5ms"), std::chrono::days(1) + 2h + 3min + 4s + 5ms);
}

TEST(DurationText, AnythingElseIsRefused) {
  for (const char* text : {"", " ", "5", "s", "-5s", "+5s", "5 s", " 5s", "5s ", "1.5s", "5x", "5S", "5sm", "1h30",
                           "h1", "٣s", "1e3s", "99999999999999999999s", "5s\n"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(DurationText, AHundredYearsAreTheMost) {
  EXPECT_EQ(parse_duration("36525d"), std::chrono::days(36525));
  EXPECT_EQ(parse_duration("36525d1ms"), std::nullopt);
  EXPECT_EQ(parse_duration("36526d"), std::nullopt);
  EXPECT_EQ(parse_duration("9223372036854775807w"), std::nullopt);
  EXPECT_EQ(parse_duration("9223372036854775808ms"), std::nullopt);
}

TEST(DurationText, IsWrittenInTheLargestUnitThatFits) {
  EXPECT_EQ(format_duration(0ms), "0");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(60s), "1m");
  EXPECT_EQ(format_duration(std::chrono::days(7)), "7d");
}

TEST(DurationText, WhatIsWrittenIsReadBack) {
  for (Duration duration : {0ms, 1ms, 999ms, 1000ms, 61'000ms, 3'600'000ms, 86'400'000ms, 86'400'001ms}) {
    EXPECT_EQ(parse_duration(format_duration(duration)), duration);
  }
}

TEST(TimeText, IsWrittenInUtcWithMilliseconds) {
  EXPECT_EQ(format_time(from_ms(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(from_ms(1'769'515'200'123)), "2026-01-27T12:00:00.123Z");
}

TEST(TimeText, OffsetsAreTakenOff) {
  const auto noon = parse_time("2026-01-27T12:00:00Z");
  ASSERT_TRUE(noon);
  EXPECT_EQ(to_ms(*noon), 1'769'515'200'000);
  EXPECT_EQ(parse_time("2026-01-27T13:30:00+01:30"), noon);
  EXPECT_EQ(parse_time("2026-01-27T04:00:00-08:00"), noon);
  EXPECT_EQ(parse_time("2026-01-28T00:00:00.000+12:00"), noon);
  EXPECT_EQ(parse_time("2026-01-27t12:00:00z"), noon);
  EXPECT_EQ(parse_time("2026-01-27T12:00:00+00:00"), noon);
}

TEST(TimeText, AFractionIsRoundedDownToTheMillisecond) {
  const auto second = *parse_time("2026-01-27T12:00:00Z");
  EXPECT_EQ(parse_time("2026-01-27T12:00:00.5Z"), second + 500ms);
  EXPECT_EQ(parse_time("2026-01-27T12:00:00.12Z"), second + 120ms);
  EXPECT_EQ(parse_time("2026-01-27T12:00:00.1239999999Z"), second + 123ms);
}

TEST(TimeText, LeapDaysExistOnlyInLeapYears) {
  EXPECT_TRUE(parse_time("2024-02-29T00:00:00Z"));
  EXPECT_TRUE(parse_time("2000-02-29T00:00:00Z"));
  EXPECT_FALSE(parse_time("2100-02-29T00:00:00Z"));
  EXPECT_FALSE(parse_time("2026-02-29T00:00:00Z"));
}

TEST(TimeText, ALeapSecondIsTheNextMinutesFirst) {
  EXPECT_EQ(parse_time("2016-12-31T23:59:60Z"), parse_time("2017-01-01T00:00:00Z"));
}

TEST(TimeText, AnythingElseIsRefused) {
  for (const char* text : {"",
                           "2026-01-27",
                           "2026-01-27T12:00:00",
                           "2026-01-27T12:00Z",
                           "2026-1-27T12:00:00Z",
                           "2026-01-27T24:00:00Z",
                           "2026-01-27T12:60:00Z",
                           "2026-01-27T12:00:61Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-01-32T00:00:00Z",
                           "2026-01-00T00:00:00Z",
                           "2026-04-31T00:00:00Z",
                           "2026-01-27T12:00:00.Z",
                           "2026-01-27T12:00:00+1:00",
                           "2026-01-27T12:00:00+0100",
                           "2026-01-27T12:00:00+24:00",
                           "2026-01-27T12:00:00+00:60",
                           "2026-01-27T12:00:00ZZ",
                           "2026-01-27T12:00:00Z ",
                           " 2026-01-27T12:00:00Z",
                           "2026-01-27X12:00:00Z",
                           "12026-01-27T12:00:00Z",
                           "-2026-01-27T12:00:00Z",
                           "1769515200",
                           "2026-01-27T12:00:00,5Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(TimeText, YearsRunFrom1970To9999InUtc) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00Z"), from_ms(0));
  EXPECT_FALSE(parse_time("1969-12-31T23:59:59Z"));
  EXPECT_FALSE(parse_time("1970-01-01T00:00:00+01:00"));
  const auto last = parse_time("9999-12-31T23:59:59.999Z");
  ASSERT_TRUE(last);
  EXPECT_EQ(format_time(*last), "9999-12-31T23:59:59.999Z");
  EXPECT_FALSE(parse_time("9999-12-31T23:59:59-00:01"));
  EXPECT_FALSE(parse_time("9999-12-31T23:59:60Z"));
}

TEST(TimeText, WhatIsWrittenIsReadBack) {
  for (std::int64_t ms : {0LL, 1LL, 951'782'400'000LL, 1'709'164'800'000LL, 4'102'444'799'999LL}) {
    EXPECT_EQ(parse_time(format_time(from_ms(ms))), from_ms(ms));
  }
}

}  // namespace
}  // namespace hapax
