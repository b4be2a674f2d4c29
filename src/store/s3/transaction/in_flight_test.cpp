#include "store/s3/transaction/in_flight.h"

#include <gtest/gtest.h>

#include <latch>
#include <stdexcept>
#include <string>

namespace hapax::s3 {
namespace {

TEST(InFlight, DoesAllAndThoseOfOneKeyInOrder) {
  std::mutex mutex;
  std::map<std::size_t, std::vector<std::size_t>> done;
  for_each_in_flight(
      100, 8, [](std::size_t i) { return i % 7; },
      [&](std::size_t i) {
        const std::lock_guard lock(mutex);
        done[i % 7].push_back(i);
      });
  std::size_t count = 0;
  for (const auto& [key, items] : done) {
    EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
    count += items.size();
  }
  EXPECT_EQ(count, 100u);
}

TEST(InFlight, DifferentKeysAreWorkedOnAtOnce) {
  std::latch together(4);
  for_each_in_flight(4, 4, [](std::size_t i) { return i; }, [&](std::size_t) { together.arrive_and_wait(); });
}

TEST(InFlight, OneThatThrowsIsThrownAndEndsTheRest) {
  std::atomic<int> done = 0;
  const auto work = [&](std::size_t i) {
    if (i == 3) throw std::runtime_error("three");
    ++done;
  };
  EXPECT_THROW(for_each_in_flight(1000, 4, [](std::size_t) { return 0; }, work), std::runtime_error);
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace hapax::s3
