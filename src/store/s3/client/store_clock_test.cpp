#include "store/s3/client/store_clock.h"

#include <gtest/gtest.h>

#include <random>

namespace hapax {
namespace {

constexpr Time kStart = from_ms(1'767'225'600'000);  // a whole second

// A bucket and a machine: how far the bucket's clock is ahead of the machine's monotonic one, which runs by itself.
struct World {
  std::int64_t offset_ms = to_ms(kStart);
  std::int64_t machine_off_ms = 0;  // how wrong the machine's own idea of the time is
  Monotonic now{};
  StoreClock clock = {};

  Time bucket_time() const { return from_ms(now.ms + offset_ms); }
  Time machine_time() const { return bucket_time() + Duration(machine_off_ms); }

  // A request that takes so long there, and so long back.
  void ask(std::int64_t there_ms = 5, std::int64_t back_ms = 5) {
    const Monotonic sent = now;
    now.ms += there_ms;
    const Time date = std::chrono::floor<std::chrono::seconds>(bucket_time());
    now.ms += back_ms;
    clock.observe(date, sent, now);
  }
  std::int64_t told_ms() { return to_ms(*clock.now(now, machine_time())); }
  std::int64_t error_ms() { return told_ms() - to_ms(bucket_time()); }
};

TEST(StoreClock, KnowsNothingBeforeTheFirstAnswer) {
  World world;
  EXPECT_FALSE(world.clock.now(world.now, kStart));
  EXPECT_FALSE(world.clock.uncertainty(world.now));
}

TEST(StoreClock, IsRightAtOnceOnAMachineThatIsKeptInTime) {
  World world;
  world.now.ms = 345;
  world.ask();
  EXPECT_EQ(world.error_ms(), 0);
}

TEST(StoreClock, IsWithinASecondOfTheBucketWhateverTheMachineThinks) {
  for (const std::int64_t off_ms : {-86'400'000, -700, 700, 86'400'000}) {
    World world;
    world.machine_off_ms = off_ms;
    world.now.ms = 345;
    world.ask();
    EXPECT_LE(std::abs(world.error_ms()), 1010) << off_ms;
  }
}

TEST(StoreClock, ConvergesFarBelowASecond) {
  World world;
  world.machine_off_ms = 3'600'000;
  std::minstd_rand random(7);
  for (int i = 0; i < 300; ++i) {
    world.now.ms += static_cast<std::int64_t>(random() % 200);
    world.ask(static_cast<std::int64_t>(1 + random() % 20), static_cast<std::int64_t>(1 + random() % 20));
    EXPECT_LE(std::abs(world.error_ms()), world.clock.uncertainty(world.now)->count() + 1);
  }
  EXPECT_LE(std::abs(world.error_ms()), 40);
  EXPECT_LE(*world.clock.uncertainty(world.now), Duration(60));
}

TEST(StoreClock, NeverRunsBackwards) {
  World world;
  world.machine_off_ms = 900;
  std::int64_t last_ms = 0;
  std::minstd_rand random(11);
  for (int i = 0; i < 1000; ++i) {
    world.now.ms += static_cast<std::int64_t>(random() % 50);
    if (i == 500) world.offset_ms -= 400;  // the bucket's clock is set back
    if (i % 7 == 0) world.ask();
    if (i == 0) continue;
    const std::int64_t now_ms = world.told_ms();
    EXPECT_GE(now_ms, last_ms);
    last_ms = now_ms;
  }
}

TEST(StoreClock, FollowsABucketWhoseClockIsSet) {
  World world;
  for (int i = 0; i < 50; ++i) world.now.ms += 77, world.ask();
  world.offset_ms += 10'000;
  world.ask();
  EXPECT_LE(std::abs(world.error_ms()), 1010);
}

TEST(StoreClock, GrowsUnsureWithoutAnswers) {
  World world;
  world.ask();
  const Duration before = *world.clock.uncertainty(world.now);
  world.now.ms += 3'600'000;
  EXPECT_GT(*world.clock.uncertainty(world.now), before + Duration(1000));
  EXPECT_EQ(*world.clock.age(world.now), Duration(3'600'000));
}

TEST(StoreClock, BearsServersThatDifferByALittle) {
  World world;
  for (int i = 0; i < 400; ++i) {
    world.now.ms += 37;
    world.offset_ms += i % 2 == 0 ? 15 : -15;
    world.ask();
    EXPECT_LE(std::abs(world.error_ms()), i < 50 ? 1010 : 60) << i;
  }
}

}  // namespace
}  // namespace hapax
