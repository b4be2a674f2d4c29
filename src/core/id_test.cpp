#include "core/id.h"

#include <gtest/gtest.h>

#include <thread>
#include <unordered_set>
#include <vector>

namespace hapax {
namespace {

constexpr std::int64_t kNoon = 1'769'515'200'000;

std::int64_t ms_of(const ExecutionId& id) {
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[i];
  return ms;
}

TEST(ExecutionId, HasTheLayoutOfAUuidV7) {
  IdGenerator ids;
  const ExecutionId id = ids.next(from_ms(kNoon));
  EXPECT_EQ(ms_of(id), kNoon);
  EXPECT_EQ(id.bytes[6] >> 4, 7);
  EXPECT_EQ(id.bytes[8] >> 6, 2);
  const std::string text = id.to_string();
  EXPECT_EQ(text.size(), 36u);
  EXPECT_EQ(text[14], '7');
  EXPECT_TRUE(text[19] == '8' || text[19] == '9' || text[19] == 'a' || text[19] == 'b') << text;
  EXPECT_EQ(text.substr(0, 13), "019bff53-2e00");
}

TEST(ExecutionId, IsReadBackInEitherCase) {
  const auto lower = ExecutionId::parse("019bff32-8800-7abc-8def-0123456789ab");
  ASSERT_TRUE(lower);
  EXPECT_EQ(lower->to_string(), "019bff32-8800-7abc-8def-0123456789ab");
  EXPECT_EQ(ExecutionId::parse("019BFF32-8800-7ABC-8DEF-0123456789AB"), lower);
}

TEST(ExecutionId, GarbageIsRefused) {
  for (const char* text : {"", "019bff32", "019bff32880007abc8def0123456789ab", "019bff32-8800-7abc-8def-0123456789a",
                           "019bff32-8800-7abc-8def-0123456789abc", "019bff32-8800-7abc-8def-0123456789ag",
                           "019bff32_8800-7abc-8def-0123456789ab", "019bff3-28800-7abc-8def-0123456789ab",
                           "{19bff32-8800-7abc-8def-0123456789a}", "------------------------------------"}) {
    EXPECT_EQ(ExecutionId::parse(text), std::nullopt) << text;
  }
}

TEST(IdGenerator, RisesStrictlyWithinAMillisecond) {
  IdGenerator ids;
  ExecutionId last = ids.next(from_ms(kNoon));
  for (int i = 0; i < 100'000; ++i) {
    const ExecutionId id = ids.next(from_ms(kNoon));
    ASSERT_LT(last, id);
    ASSERT_LT(last.to_string(), id.to_string());
    last = id;
  }
  EXPECT_EQ(ms_of(last), kNoon);
}

TEST(IdGenerator, RisesWhenTheClockStepsBack) {
  IdGenerator ids;
  ExecutionId last = ids.next(from_ms(kNoon));
  for (std::int64_t ms : {kNoon - 1, kNoon - 1'000'000, kNoon, kNoon + 1, kNoon - 5, kNoon + 2}) {
    const ExecutionId id = ids.next(from_ms(ms));
    EXPECT_LT(last, id);
    last = id;
  }
  EXPECT_EQ(ms_of(last), kNoon + 2);
}

TEST(IdGenerator, ThreadsNeverGetTheSame) {
  constexpr std::size_t kThreads = 4, kEach = 10'000;
  IdGenerator ids;
  std::vector<std::vector<ExecutionId>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : made) {
      threads.emplace_back([&ids, &mine] {
        for (std::size_t i = 0; i < kEach; ++i) mine.push_back(ids.next(from_ms(kNoon)));
      });
    }
  }
  std::unordered_set<ExecutionId> all;
  for (const auto& mine : made) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), kThreads * kEach);
}

TEST(IdGenerator, TwoGeneratorsDiffer) {
  IdGenerator one, other;
  EXPECT_NE(one.next(from_ms(kNoon)), other.next(from_ms(kNoon)));
}

}  // namespace
}  // namespace hapax
