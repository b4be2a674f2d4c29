#include "store/s3/s3_store.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "store/s3/envelope.h"
#include "store/s3/memory_objects.h"
#include "store/s3/names.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

class S3Store : public testing::Test {
 protected:
  S3Store() : objects_(std::make_shared<MemoryObjects>(clock_)), store_(open_s3_store(objects_, {.pulse = 0ms})) {}

  SubmitOutcome submit(const Submission& submission) { return store_->submit({&submission, 1}).at(0); }
  std::vector<Execution> claim(std::int32_t limit = 10) {
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {"work"};
    request.limit = limit;
    request.secret = test_secret(++secrets_);
    return store_->claim({&request, 1}).at(0).executions;
  }

  ManualClock clock_;
  std::shared_ptr<MemoryObjects> objects_;
  std::unique_ptr<Store> store_;
  std::uint64_t secrets_ = 0;
};

TEST_F(S3Store, RefusesANewerFormat) {
  MemoryObjects objects(clock_);
  const auto newer = std::make_shared<MemoryObjects>(clock_);
  newer->put(Put{std::string(s3::kFormat), s3::seal(R"({"version":2})"), std::nullopt});
  EXPECT_THROW(open_s3_store(newer), Failure);
}

TEST_F(S3Store, HintsThatWereRemovedAreRebuilt) {
  submit(Task().key("a"));
  submit(Task().delay(1h));
  submit(Task());
  claim(1);
  std::vector<std::string> hints;
  for (const std::string& name : objects_->names()) {
    if (name.starts_with("ready/") || name.starts_with("running/")) hints.push_back(name);
  }
  ASSERT_EQ(hints.size(), 3u);
  objects_->remove(hints);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(rebuild_s3_hints(*objects_), 3);
  EXPECT_EQ(claim().size(), 1u);
  EXPECT_EQ(store_->count().at(0).running, 2);
  EXPECT_EQ(rebuild_s3_hints(*objects_), 0);
}

TEST_F(S3Store, MigratingRebuildsTheHintsOfActivitiesToo) {
  ActivityChange change;
  change.row.name_space = "default";
  change.row.id = "a";
  change.row.next_due = clock_.now();
  ASSERT_TRUE(store_->activities().change(std::span(&change, 1)).front());
  ActivityRun run;
  run.name_space = "default";
  run.activity = "a";
  run.occurrence = "o";
  store_->activities().record(std::span(&run, 1));
  std::vector<std::string> hints;
  for (const std::string& name : objects_->names()) {
    if (name.starts_with("scheduled/") || name.starts_with("firing-")) hints.push_back(name);
  }
  ASSERT_EQ(hints.size(), 3u);
  objects_->remove(hints);
  EXPECT_TRUE(store_->activities().due(10).rows.empty());
  store_->migrate();
  EXPECT_EQ(store_->activities().due(10).rows.size(), 1u);
  RunFilter filter;
  filter.name_space = "default";
  filter.activity = "a";
  EXPECT_EQ(store_->activities().runs(filter).size(), 1u);
}

TEST_F(S3Store, HintThatLeadsNowhereIsPassedByAndRemovedAfterAMinute) {
  const Execution task = submit(Task()).execution;
  std::vector<s3::Hint> hints = s3::wanted_hints(task, clock_.now());
  hints.at(0).mark = "stray";
  hints.at(0).priority = 5;
  const std::string stray = hints.at(0).name();
  objects_->put(Put{stray, s3::seal(""), std::nullopt});
  EXPECT_EQ(claim().size(), 1u);
  EXPECT_TRUE(objects_->get(stray));
  clock_.advance(1min);
  EXPECT_TRUE(claim().empty());
  EXPECT_FALSE(objects_->get(stray));
}

TEST_F(S3Store, ADeadClaimHoldsASlotForAMinuteAtMost) {
  auto policies = std::make_shared<QueuePolicies>();
  policies->set("default", "work", {.max_running = 1});
  store_->set_policies(policies);
  const Execution task = submit(Task()).execution;
  Execution running = task;
  running.status = Status::running;
  running.lease_expires_at = clock_.now() + 1min;
  running.id = test_id(999'999);
  s3::Hint hint = s3::wanted_hints(running, clock_.now()).at(0);
  hint.mark = "dead";
  objects_->put(Put{hint.name(), s3::seal(""), std::nullopt});
  EXPECT_TRUE(claim().empty());
  clock_.advance(1min);
  EXPECT_EQ(claim().size(), 1u);
}

TEST_F(S3Store, ManyThousandsWaitingAreClaimedInOrder) {
  std::vector<Submission> submissions;
  for (int i = 0; i < 2500; ++i) submissions.push_back(Task().concurrency_key(i < 2400 ? "same" : "").priority(i % 3));
  for (Submission& submission : submissions) {
    if (submission.execution.concurrency_key == "") submission.execution.concurrency_key.reset();
  }
  store_->submit(submissions);
  const auto claimed = claim(30);
  ASSERT_EQ(claimed.size(), 30u);
  EXPECT_EQ(
      std::count_if(claimed.begin(), claimed.end(), [](const Execution& e) { return e.concurrency_key.has_value(); }),
      1);
  for (const Execution& execution : claimed) EXPECT_EQ(execution.priority, 2);
}

TEST_F(S3Store, WhatIsDeletedLeavesNothingBehind) {
  submit(Task().key("k").ttl(1h));
  const Report report{token_of(claim().at(0)), Report::Completed{"1"}};
  store_->finish({&report, 1});
  for (int day = 0; day < 10; ++day) {
    clock_.advance(24h);
    store_->purge(100);
  }
  EXPECT_EQ(objects_->names(), std::vector<std::string>{std::string(s3::kFormat)});
}

}  // namespace
}  // namespace hapax
