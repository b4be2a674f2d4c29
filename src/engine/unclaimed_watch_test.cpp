#include "engine/unclaimed_watch.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "store/memory/memory_store.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

class UnclaimedWatchTest : public ::testing::Test {
 protected:
  UnclaimedWatchTest() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    spdlog::set_pattern("%v");
  }
  ~UnclaimedWatchTest() override {
    timer_.stop();
    spdlog::set_default_logger(before_);
  }

  Execution submit(Task task) {
    const Submission submission = std::move(task);
    Execution created = store_->submit({&submission, 1}).at(0).execution;
    watch_.submitted(created);
    return created;
  }
  void announce() {
    const WorkerInfo worker{.name_space = "default",
                            .name = "w",
                            .origin = {},
                            .queues = {"work"},
                            .types = {},
                            .last_seen_at = clock_.now()};
    store_->announce({&worker, 1});
  }
  // What was logged since.
  std::string advance(Duration by) {
    clock_.advance(by);
    watch_.look();
    std::string said = log_.str();
    log_.str("");
    return said;
  }

  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  ManualClock clock_;
  std::unique_ptr<Store> store_ = open_memory_store(clock_);
  Timer timer_;
  UnclaimedWatch watch_{*store_, timer_};
};

TEST_F(UnclaimedWatchTest, SaysItOnceAfterAMinute) {
  const ExecutionId id = submit(Task("charge").id(test_id(1))).id;
  submit(Task("charge").id(test_id(2)));
  EXPECT_THAT(advance(59s), IsEmpty());
  const std::string said = advance(1s);
  EXPECT_THAT(said, HasSubstr("namespace default: Nobody has claimed tasks of the type charge in the queue work"));
  EXPECT_THAT(said, HasSubstr("hapax why " + id.to_string()));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_THAT(advance(60s), IsEmpty());
}

TEST_F(UnclaimedWatchTest, SaysItAgainWhenItsWorkerHasGone) {
  submit(Task("charge"));
  EXPECT_THAT(advance(60s), HasSubstr("Nobody"));
  announce();
  EXPECT_THAT(advance(59s), IsEmpty());
  announce();
  EXPECT_THAT(advance(59s), IsEmpty());
  EXPECT_THAT(advance(60s), HasSubstr("Nobody"));
}

TEST_F(UnclaimedWatchTest, WhatIsClaimedIsNotWatchedAnyMore) {
  submit(Task("charge").id(test_id(1)));
  ClaimRequest request;
  request.name_space = "default";
  request.queues = {"work"};
  const Report report{token_of(store_->claim({&request, 1}).at(0).executions.at(0)), Report::Completed{"1"}};
  EXPECT_TRUE(store_->finish({&report, 1}).at(0).accepted);
  EXPECT_THAT(advance(60s), IsEmpty());
  submit(Task("charge").id(test_id(2)));
  EXPECT_THAT(advance(60s), HasSubstr(test_id(2).to_string()));
}

TEST_F(UnclaimedWatchTest, ABusyQueueMayBeClaimedLater) {
  submit(Task("charge").id(test_id(1)));
  submit(Task("mail").id(test_id(2)));
  ClaimRequest request;
  request.name_space = "default";
  request.queues = {"work"};
  request.lease = 1h;
  ASSERT_EQ(store_->claim({&request, 1}).at(0).executions.size(), 1U);
  EXPECT_THAT(advance(60s), IsEmpty());
}

TEST_F(UnclaimedWatchTest, ADelayedOneIsWatchedWhenItIsDue) {
  submit(Task("charge").delay(1h));
  EXPECT_THAT(advance(59min), IsEmpty());
  EXPECT_THAT(advance(2min), HasSubstr("Nobody"));
}

}  // namespace
}  // namespace hapax
