#include "core/retry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hapax {
namespace {

using namespace std::chrono_literals;

ExecutionId numbered(std::uint8_t high, std::uint8_t low) {
  ExecutionId id;
  id.bytes[14] = high;
  id.bytes[15] = low;
  return id;
}

// The longest and shortest pause over a thousand executions.
std::pair<Duration, Duration> pauses(const RetryPolicy& policy, std::int32_t attempt) {
  Duration shortest = Duration::max(), longest = Duration::min();
  for (int i = 0; i < 1000; ++i) {
    const Duration pause = backoff(policy, numbered(std::uint8_t(i / 256), std::uint8_t(i % 256)), attempt);
    shortest = std::min(shortest, pause);
    longest = std::max(longest, pause);
  }
  return {shortest, longest};
}

TEST(Backoff, DrawsFromAllOfTheExponentialPause) {
  Duration ceiling = 1s;
  for (std::int32_t attempt = 1; attempt <= 6; ++attempt, ceiling *= 2) {
    const auto [shortest, longest] = pauses({}, attempt);
    EXPECT_GE(shortest, 0ms);
    EXPECT_LE(longest, ceiling);
    EXPECT_LT(shortest, ceiling / 20) << attempt;
    EXPECT_GT(longest, ceiling * 19 / 20) << attempt;
  }
}

TEST(Backoff, IsCapped) {
  for (std::int32_t attempt : {7, 8, 100, 1000, INT32_MAX}) {
    const auto [shortest, longest] = pauses({}, attempt);
    EXPECT_GE(shortest, 0ms) << attempt;
    EXPECT_LE(longest, 60s) << attempt;
    EXPECT_GT(longest, 57s) << attempt;
  }
}

TEST(Backoff, IsTheSameWhereverItIsComputed) {
  const auto id = *ExecutionId::parse("019bff32-8800-7abc-8def-0123456789ab");
  EXPECT_EQ(backoff({}, id, 3), backoff({}, id, 3));
  std::set<Duration> drawn;
  for (std::int32_t attempt = 7; attempt < 27; ++attempt) drawn.insert(backoff({}, id, attempt));
  EXPECT_GT(drawn.size(), 15u);
}

TEST(Backoff, FollowsThePolicy) {
  EXPECT_EQ(pauses({.initial = 0ms, .factor = 2, .max = 60s}, 5).second, 0ms);
  EXPECT_LE(pauses({.initial = 10ms, .factor = 1, .max = 60s}, 50).second, 10ms);
  EXPECT_LE(pauses({.initial = 5min, .factor = 2, .max = 1s}, 1).second, 1s);
  EXPECT_EQ(pauses({.initial = 1s, .factor = 100, .max = 0ms}, 1000).second, 0ms);
}

}  // namespace
}  // namespace hapax
