#include "engine/lane.h"

#include <gmock/gmock.h>

#include <future>
#include <latch>
#include <optional>
#include <semaphore>
#include <thread>

namespace hapax {
namespace {

using ::testing::ElementsAre;

using IntLane = Lane<int, int>;

std::vector<int> doubled(std::span<const int> items) {
  std::vector<int> outcomes;
  for (int item : items) outcomes.push_back(2 * item);
  return outcomes;
}

std::vector<int> put_and_wait(IntLane& lane, std::vector<int> items) {
  return await<std::vector<int>>([&](auto reply) { lane.put(std::move(items), std::move(reply)); });
}

TEST(Lane, AnswersEachPutWithItsOwnOutcomesInOrder) {
  IntLane lane(doubled, 100, true);
  EXPECT_THAT(put_and_wait(lane, {1, 2, 3}), ElementsAre(2, 4, 6));
  EXPECT_THAT(put_and_wait(lane, {4}), ElementsAre(8));
}

TEST(Lane, CommitsTogetherWhatArrivesDuringACommit) {
  std::latch first_started(1), go(1);
  std::vector<std::size_t> sizes;
  IntLane lane(
      [&](std::span<const int> items) {
        if (sizes.empty()) {
          first_started.count_down();
          go.wait();
        }
        sizes.push_back(items.size());
        return doubled(items);
      },
      100, true);
  std::vector<std::future<std::vector<int>>> answers;
  const auto put = [&](int item) {
    auto promise = std::make_shared<std::promise<std::vector<int>>>();
    answers.push_back(promise->get_future());
    lane.put({item}, [promise](Answer<std::vector<int>> answer) { promise->set_value(std::move(answer).get()); });
  };
  put(1);
  first_started.wait();
  for (int i = 2; i <= 10; ++i) put(i);
  go.count_down();
  for (int i = 0; i < 10; ++i) EXPECT_THAT(answers[std::size_t(i)].get(), ElementsAre(2 * (i + 1)));
  lane.stop();
  EXPECT_THAT(sizes, ElementsAre(1, 9));
}

TEST(Lane, NeverCommitsMoreThanItsBoundAtOnce) {
  std::latch first_started(1), go(1), done(8);
  std::vector<std::size_t> sizes;
  IntLane lane(
      [&](std::span<const int> items) {
        if (sizes.empty()) {
          first_started.count_down();
          go.wait();
        }
        sizes.push_back(items.size());
        return doubled(items);
      },
      3, true);
  const auto put = [&] { lane.put({1}, [&](const Answer<std::vector<int>>&) { done.count_down(); }); };
  put();
  first_started.wait();
  for (int i = 0; i < 7; ++i) put();
  go.count_down();
  done.wait();
  lane.stop();
  EXPECT_THAT(sizes, ElementsAre(1, 3, 3, 1));
}

TEST(Lane, CommitsAsManyBatchesAtOnceAsItHasCommitters) {
  std::latch both_commit(2);
  IntLane lane(
      [&](std::span<const int> items) {
        both_commit.arrive_and_wait();
        return doubled(items);
      },
      1, true, 2);
  std::future<std::vector<int>> first = std::async(std::launch::async, [&] { return put_and_wait(lane, {1}); });
  EXPECT_THAT(put_and_wait(lane, {2}), ElementsAre(4));
  EXPECT_THAT(first.get(), ElementsAre(2));
}

TEST(Lane, CommitsBesideItselfOnlyWhatIsWorthIt) {
  std::latch first_started(1), beside_started(1), go(1);
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  IntLane lane(
      [&](std::span<const int> items) {
        std::size_t order;
        {
          std::lock_guard lock(mutex);
          order = sizes.size();
          sizes.push_back(items.size());
        }
        if (order == 0) first_started.count_down();
        if (order == 1) beside_started.count_down();
        if (order < 2) go.wait();
        return doubled(items);
      },
      100, true, 2, 3);
  std::latch done(5);
  const auto put = [&] { lane.put({1}, [&](const Answer<std::vector<int>>&) { done.count_down(); }); };
  put();
  first_started.wait();
  for (int i = 0; i < 3; ++i) put();  // one and two of them are left waiting
  beside_started.wait();
  put();
  go.count_down();
  done.wait();
  lane.stop();
  EXPECT_THAT(sizes, ElementsAre(1, 3, 1));
}

TEST(Lane, RepeatsABatchWhoseOutcomeIsUnknown) {
  int calls = 0;
  IntLane lane(
      [&](std::span<const int> items) {
        if (++calls < 3) throw Failure(Failure::Code::outcome_unknown, "connection lost while committing");
        return doubled(items);
      },
      100, true);
  EXPECT_THAT(put_and_wait(lane, {7}), ElementsAre(14));
  EXPECT_EQ(calls, 3);
}

TEST(Lane, ARepeatThatDoesNothingLeavesTheOutcomeUnknown) {
  int calls = 0;
  IntLane lane(
      [&](std::span<const int>) -> std::vector<int> {
        throw Failure(++calls == 1 ? Failure::Code::outcome_unknown : Failure::Code::unavailable, "gone");
      },
      100, true);
  try {
    put_and_wait(lane, {1});
    ADD_FAILURE() << "it was answered";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::outcome_unknown);
  }
  EXPECT_EQ(calls, 2);
}

TEST(Lane, DoesNotRepeatWhatIsNotRepeatable) {
  int calls = 0;
  IntLane lane(
      [&](std::span<const int>) -> std::vector<int> {
        ++calls;
        throw Failure(Failure::Code::outcome_unknown, "connection lost while committing");
      },
      100, false);
  EXPECT_THROW(put_and_wait(lane, {7}), Failure);
  EXPECT_EQ(calls, 1);
}

TEST(Lane, TellsEveryCallerOfAFailureAndGoesOn) {
  bool broken = true;
  IntLane lane(
      [&](std::span<const int> items) {
        if (broken) throw Failure(Failure::Code::unavailable, "the disk is full");
        return doubled(items);
      },
      100, true);
  EXPECT_THROW(put_and_wait(lane, {1}), Failure);
  broken = false;
  EXPECT_THAT(put_and_wait(lane, {1}), ElementsAre(2));
  EXPECT_EQ(lane.failures(), 1);
}

TEST(Lane, CommitThatLeavesOutAnItemAnswersNobodyWithAnothersOutcome) {
  IntLane lane([](std::span<const int> items) { return doubled(items.first(items.size() - 1)); }, 100, true);
  EXPECT_THROW(put_and_wait(lane, {1, 2}), Failure);
  EXPECT_EQ(lane.failures(), 1);
}

// A store that does not answer until it is told to, and callers who wait for it.
class StuckLane : public ::testing::Test {
 protected:
  ~StuckLane() override {
    go_.count_down();
    lane_.stop();
  }

  std::future<std::optional<Failure::Code>> put(std::vector<int> items, std::size_t bytes = 0) {
    auto promise = std::make_shared<std::promise<std::optional<Failure::Code>>>();
    lane_.put(
        std::move(items),
        [promise](Answer<std::vector<int>> answer) {
          try {
            std::move(answer).get();
            promise->set_value(std::nullopt);
          } catch (const Failure& failure) {
            promise->set_value(failure.code());
          }
        },
        bytes);
    return promise->get_future();
  }

  bool is_answered(const std::future<std::optional<Failure::Code>>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::latch started_{1}, go_{1};
  IntLane lane_{[this](std::span<const int> items) {
                  started_.try_wait() ? void() : started_.count_down();
                  go_.wait();
                  return doubled(items);
                },
                100,
                true,
                1,
                1,
                LaneLimits{.timeout = Duration(30), .items = 3, .bytes = 1000}};
};

TEST_F(StuckLane, AnswersAtItsDeadlineWhatWaitsBehindACallThatHangs) {
  const auto under_way = put({1});
  started_.wait();
  auto waiting = put({2});
  while (!is_answered(waiting)) lane_.expire();
  EXPECT_EQ(waiting.get(), Failure::Code::unavailable);
  EXPECT_FALSE(is_answered(under_way)) << "nobody knows yet what became of it";
}

TEST_F(StuckLane, RefusesAtOnceWhatIsMoreThanItMayKeep) {
  put({1});
  started_.wait();
  const auto first = put({2, 3});
  auto too_many = put({4, 5});
  ASSERT_TRUE(is_answered(too_many));
  EXPECT_EQ(too_many.get(), Failure::Code::unavailable);
  auto too_large = put({4}, 1001);
  ASSERT_TRUE(is_answered(too_large));
  EXPECT_EQ(too_large.get(), Failure::Code::unavailable);
  const auto small = put({4}, 1000);
  EXPECT_FALSE(is_answered(small));
}

// Commits one item each time it is told to.
TEST(Lane, RefusesWhatCommitsThatGoOnDoNotCatchUpWith) {
  std::counting_semaphore<> go(0);
  IntLane lane(
      [&](std::span<const int> items) {
        go.acquire();
        return doubled(items);
      },
      1, true, 1, 1, LaneLimits{.backlog = Duration(0)});
  std::vector<std::future<std::vector<int>>> answers;
  const auto put = [&] {
    auto promise = std::make_shared<std::promise<std::vector<int>>>();
    answers.push_back(promise->get_future());
    lane.put({1}, [promise](Answer<std::vector<int>> answer) {
      try {
        promise->set_value(std::move(answer).get());
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    });
  };
  for (int i = 0; i < 8; ++i) put();  // while the first is committed, which takes long: nothing is behind yet
  go.release(4);
  answers[3].wait();
  put();  // the last have waited for four commits
  EXPECT_THROW(answers.back().get(), Failure);
  go.release(4);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_THAT(answers[i].get(), ElementsAre(2));
  go.release(1);
  put();
  EXPECT_THAT(answers.back().get(), ElementsAre(2));
}

TEST(Lane, TakesOnePutThatIsLargerThanItsBounds) {
  IntLane lane(doubled, 100, true, 1, 1, LaneLimits{.items = 1, .bytes = 1});
  EXPECT_THAT(put_and_wait(lane, {1, 2, 3}), ElementsAre(2, 4, 6));
}

TEST(Lane, DoesNotRepeatBeyondTheDeadline) {
  int calls = 0;
  IntLane lane(
      [&](std::span<const int>) -> std::vector<int> {
        ++calls;
        while (!CallDeadline::is_over()) std::this_thread::yield();
        throw Failure(Failure::Code::outcome_unknown, "connection lost while committing");
      },
      100, true, 1, 1, LaneLimits{.timeout = Duration(20)});
  EXPECT_THROW(put_and_wait(lane, {7}), Failure);
  EXPECT_EQ(calls, 1);
}

TEST(Lane, RefusesWhatComesAfterItStopped) {
  IntLane lane(doubled, 100, true);
  lane.stop();
  try {
    put_and_wait(lane, {1});
    FAIL() << "a stopped lane took an item";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::stopped);
  }
}

}  // namespace
}  // namespace hapax
