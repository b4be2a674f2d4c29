#include "core/rate.h"

#include <gtest/gtest.h>

#include <random>

namespace hapax {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

Rate rate_of(std::string_view text, std::int64_t burst = 0) {
  Rate rate = parse_rate(text).value();
  if (burst > 0) rate.burst = burst;
  return rate;
}

TEST(RateText, IsReadInEveryUnit) {
  EXPECT_EQ(parse_rate("100/sec"), (Rate{100, 1s, 100}));
  EXPECT_EQ(parse_rate("500/min"), (Rate{500, 60s, 500}));
  EXPECT_EQ(parse_rate("10000/hour"), (Rate{10000, 1h, 10000}));
  EXPECT_EQ(parse_rate("5/day"), (Rate{5, 24h, 5}));
  for (const char* text : {"1/s", "1/second"}) EXPECT_EQ(parse_rate(text), parse_rate("1/sec")) << text;
  for (const char* text : {"1/m", "1/minute"}) EXPECT_EQ(parse_rate(text), parse_rate("1/min")) << text;
  EXPECT_EQ(parse_rate("1/h"), parse_rate("1/hour"));
  EXPECT_EQ(parse_rate("1/d"), parse_rate("1/day"));
}

TEST(RateText, IsReadBack) {
  for (const char* text : {"100/sec", "500/min", "10000/hour", "5/day"}) {
    EXPECT_EQ(format_rate(parse_rate(text).value()), text);
  }
}

TEST(RateText, AnythingElseIsRefused) {
  for (const char* text : {"", "100", "/sec", "100/", "0/sec", "-1/sec", "+1/sec", "1.5/sec", "100 /sec", "100/ sec",
                           "100/Sec", "100/fortnight", "100/sec/min", "99999999999999999999/sec", "1000000001/sec"}) {
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
  }
}

TEST(RateLimit, AnUnusedBucketIsFull) {
  RateState state;
  EXPECT_EQ(next_permit(rate_of("10/sec"), state, kNoon), kNoon);
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon, 100), 10);
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon, 1), 0);
}

TEST(RateLimit, TakesNoMoreThanWanted) {
  RateState state;
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon, 0), 0);
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon, 3), 3);
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon, 100), 7);
}

TEST(RateLimit, PermitsComeBackOneByOne) {
  const Rate rate = rate_of("10/sec");
  RateState state;
  take(rate, state, kNoon, 10);
  EXPECT_EQ(next_permit(rate, state, kNoon), kNoon + 100ms);
  EXPECT_EQ(take(rate, state, kNoon + 99ms, 5), 0);
  EXPECT_EQ(take(rate, state, kNoon + 100ms, 5), 1);
  EXPECT_EQ(take(rate, state, kNoon + 450ms, 5), 3);
}

TEST(RateLimit, ALongIdleTimeSavesUpNoMoreThanTheBurst) {
  const Rate rate = rate_of("10/sec");
  RateState state;
  take(rate, state, kNoon, 10);
  EXPECT_EQ(take(rate, state, kNoon + 24h * 365, 1000), 10);
  EXPECT_EQ(take(rate, state, kNoon + 24h * 365, 1000), 0);
}

TEST(RateLimit, ABurstMayBeLargerOrSmallerThanTheCount) {
  RateState large, small;
  EXPECT_EQ(take(rate_of("10/sec", 50), large, kNoon, 1000), 50);
  EXPECT_EQ(take(rate_of("10/sec", 50), large, kNoon + 1s, 1000), 10);
  EXPECT_EQ(take(rate_of("10/sec", 1), small, kNoon, 1000), 1);
  EXPECT_EQ(take(rate_of("10/sec", 1), small, kNoon + 1s, 1000), 1);
}

TEST(RateLimit, ManySmallTakesGetWhatOneBigTakeGets) {
  for (const char* text : {"7/sec", "1000/sec", "333333/sec", "7/min", "3/day"}) {
    const Rate rate = rate_of(text);
    RateState one, many;
    const auto big = take(rate, one, kNoon, rate.burst * 2);
    std::int64_t small = 0;
    while (take(rate, many, kNoon, 1) == 1) ++small;
    EXPECT_EQ(big, rate.burst) << text;
    EXPECT_GE(small, big) << text;
    EXPECT_LE(small, big + 1 + big / 1000) << text;
  }
}

TEST(RateLimit, OverALongTimeTheRateHolds) {
  const Rate rate = rate_of("7/sec", 1);
  RateState state;
  std::int64_t taken = 0;
  for (Time now = kNoon; now < kNoon + 1000s; now = next_permit(rate, state, now)) {
    const auto got = take(rate, state, now, 1);
    ASSERT_EQ(got, 1);
    taken += got;
  }
  EXPECT_LE(taken, 7001);
  EXPECT_GE(taken, 6900);
}

TEST(RateLimit, TheNextPermitIsTheFirstMillisecondThatGivesOne) {
  std::mt19937_64 random(42);
  const char* units[] = {"sec", "min", "hour", "day"};
  for (int i = 0; i < 20'000; ++i) {
    const auto count = static_cast<std::int64_t>(1 + random() % 5000);
    const Rate rate =
        rate_of(std::to_string(count) + "/" + units[random() % 4], 1 + static_cast<std::int64_t>(random() % 300));
    RateState state;
    Time now = kNoon;
    for (int step = 0; step < 5; ++step) {
      take(rate, state, now, 1 + static_cast<std::int64_t>(random() % 400));
      now += Duration(random() % 1000);
    }
    const Time next = next_permit(rate, state, now);
    RateState then = state;
    ASSERT_EQ(take(rate, then, next, 1), 1) << format_rate(rate) << " burst " << rate.burst;
    if (next > now) {
      RateState before = state;
      ASSERT_EQ(take(rate, before, next - 1ms, 1), 0) << format_rate(rate) << " burst " << rate.burst;
    }
  }
}

TEST(RateLimit, AClockThatStepsBackGivesNothingAway) {
  const Rate rate = rate_of("10/sec");
  RateState state;
  take(rate, state, kNoon, 10);
  EXPECT_EQ(take(rate, state, kNoon - 10s, 10), 0);
  EXPECT_EQ(take(rate, state, kNoon + 1s, 100), 10);
}

TEST(RateLimit, AClockThatWasSetBackFarIsNotWaitedFor) {
  const Rate rate = rate_of("10/sec");
  RateState state;
  take(rate, state, kNoon, 10);
  EXPECT_EQ(take(rate, state, kNoon - 24h, 10), 0);
  EXPECT_EQ(take(rate, state, kNoon - 24h + 1s, 10), 10);
}

TEST(RateLimit, WhatWasTakenUnderAnotherRateCountsInPermits) {
  RateState state;
  take(rate_of("2/day"), state, kNoon, 2);
  const RateState slow = state;
  EXPECT_EQ(take(rate_of("1000/sec"), state, kNoon + 1s, 5000), 998);
  state = slow;
  EXPECT_EQ(take(rate_of("1/min"), state, kNoon, 1), 0);  // at most an empty bucket
  EXPECT_NE(state, slow);
  EXPECT_EQ(next_permit(rate_of("1/min"), slow, kNoon), kNoon + 1min);
  EXPECT_EQ(next_permit(rate_of("1/min"), state, kNoon + 30s), kNoon + 1min);
  EXPECT_EQ(take(rate_of("1/min"), state, kNoon + 1min, 5), 1);
}

TEST(RateLimit, ALowerRateCountsWhatWasTakenUnderTheHigherOne) {
  RateState state;
  take(rate_of("1000/sec"), state, kNoon, 1);
  EXPECT_EQ(take(rate_of("2/day"), state, kNoon, 5), 1);
  EXPECT_EQ(next_permit(rate_of("2/day"), state, kNoon), kNoon + 12h);
}

// Stored by a version that did not keep the rate.
TEST(RateLimit, AStateOfAnUnknownRateIsAtMostAnEmptyBucket) {
  RateState state{to_ms(kNoon + 24h) * 1'000'000, {}};
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon, 10), 0);
  EXPECT_EQ(take(rate_of("10/sec"), state, kNoon + 1s, 100), 10);
  RateState nearly_full{to_ms(kNoon + 100ms) * 1'000'000, {}};
  EXPECT_EQ(take(rate_of("10/sec"), nearly_full, kNoon, 100), 9);
}

TEST(RateLimit, TheFastestRateDoesNotOverflow) {
  const Rate rate = rate_of("1000000000/sec");
  RateState state;
  EXPECT_EQ(take(rate, state, kNoon, 2'000'000'000), 1'000'000'000);
  const Rate slow = rate_of("1/day", 364);
  RateState slow_state;
  EXPECT_EQ(take(slow, slow_state, kNoon, 1'000'000), 364);
  EXPECT_EQ(next_permit(slow, slow_state, kNoon), kNoon + 24h);
}

}  // namespace
}  // namespace hapax
