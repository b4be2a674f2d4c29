// Why a task does not run is answered in 20 ms at most, with a million tasks around it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "conformance/stores.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::uint64_t kTasks = 1'000'000, kBatch = 1000;
constexpr int kWorkers = 1000;

class WhyCost : public testing::TestWithParam<StoreKind> {};
INSTANTIATE_TEST_SUITE_P(Stores, WhyCost, testing::ValuesIn([] {
                           std::vector<StoreKind> kinds = all_stores();
                           std::erase_if(kinds, [](const StoreKind& kind) {
                             return kind.name != "Sqlite" && kind.name != "Postgres";
                           });
                           return kinds;
                         }()),
                         [](const auto& info) { return info.param.name; });

TEST_P(WhyCost, DoesNotGrowWithWhatElseWaits) {
  ManualClock clock;
  const auto home = GetParam().make();
  const auto store = home->open(clock);
  for (std::uint64_t i = 0; i < kTasks; i += kBatch) {
    std::vector<Submission> batch;
    for (std::uint64_t j = 0; j < kBatch; ++j) {
      const std::uint64_t n = i + j;
      Task task;
      task.id(test_id(n + 1)).priority(static_cast<std::int32_t>(n % 3));
      if (n % 10 == 0) task.delay(24h).priority(9);
      batch.push_back(task);
    }
    store->submit(batch);
  }
  std::vector<WorkerInfo> workers(kWorkers);  // none of which claims them
  for (int i = 0; i < kWorkers; ++i) {
    workers[static_cast<std::size_t>(i)] = {.name_space = "default",
                                            .name = "worker-" + std::to_string(i),
                                            .origin = {},
                                            .queues = {"other", "work"},
                                            .types = {"mail", "charge"},
                                            .last_seen_at = clock.now()};
  }
  store->announce(workers);
  std::vector<double> times;
  for (std::uint64_t n : {999'990U, 500'001U, 3U, 0U, 999'999U}) {
    const auto start = Steady::now();
    const auto why = store->why("default", test_id(n + 1));
    times.push_back(std::chrono::duration<double, std::milli>(Steady::now() - start).count());
    ASSERT_TRUE(why.has_value());
    EXPECT_NE(why->because.back().find("no_worker"), std::string::npos);
    std::cout << times.back() << " ms: " << why->sentences.at(0) << "\n";
  }
  std::sort(times.begin(), times.end());
  EXPECT_LE(times.at(times.size() / 2), 20);
}

}  // namespace
}  // namespace hapax
