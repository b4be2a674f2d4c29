#include "store/s3/s3_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "store/s3/documents/envelope.h"
#include "store/s3/documents/names.h"
#include "store/s3/memory_objects.h"
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
  newer->put(Put{std::string(s3::kFormat), s3::seal(R"({"version":1000})"), std::nullopt});
  EXPECT_THROW(open_s3_store(newer), Failure);
}

TEST_F(S3Store, IsNotCreatedWhereConditionsDoNotHoldAmongWriters) {
  const auto objects = std::make_shared<MemoryObjects>(clock_);
  objects->break_conditions_among_writers();
  try {
    open_s3_store(objects, {.pulse = 0ms});
    FAIL() << "it was created";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::misuse);
    EXPECT_NE(std::string(failure.what()).find("among writers at the same time"), std::string::npos) << failure.what();
  }
  EXPECT_TRUE(objects->names().empty());
}

TEST_F(S3Store, TriesTheBucketOutOnceInItsLife) {
  objects_->reset_counts();
  open_s3_store(objects_, {.pulse = 0ms});
  const std::map<ObjectRequest::Verb, int> one_get{{ObjectRequest::Verb::get, 1}};
  EXPECT_EQ(objects_->counts(), one_get);
}

TEST_F(S3Store, IsNotCreatedWhereThatWasNotAsked) {
  EXPECT_THROW(open_s3_store(std::make_shared<MemoryObjects>(clock_), {.create = false, .pulse = 0ms}), Failure);
}

// As it was in format 1: in the folder of the kind of its scope.
TEST_F(S3Store, RecordsOfTheOlderFormatAreMovedToTheFoldersOfTheirScopes) {
  const Submission of_type = Task("charge").id(test_id(1)).key("k"), of_queue = Task("charge").id(test_id(2)).key("q");
  Submission in_queue = of_queue;
  in_queue.execution.identity->scope.tag = Scope::Tag::queue;
  submit(of_type);
  submit(in_queue);
  ASSERT_EQ(objects_->names("idempotency/").size(), 2u);
  for (const std::string& name : objects_->names("idempotency/")) {
    const std::string folder = name.starts_with("idempotency/queue=") ? "queue" : "type";
    objects_->put(Put{"idempotency/" + folder + name.substr(name.rfind('/')), objects_->get(name)->body, std::nullopt});
    objects_->remove(name);
  }
  objects_->remove(std::string(s3::kFormat));
  objects_->put(Put{std::string(s3::kFormat), s3::seal(R"({"version":1})"), std::nullopt});

  EXPECT_THROW(open_s3_store(objects_, {.pulse = 0ms}), Failure);
  store_ = open_s3_store(objects_, {.migrate = true, .pulse = 0ms});
  EXPECT_EQ(objects_->names("idempotency/charge/").size(), 1u);
  EXPECT_EQ(objects_->names("idempotency/queue=work/").size(), 1u);
  EXPECT_EQ(objects_->names("idempotency/").size(), 2u);
  Submission again = of_type;
  again.execution.id = test_id(3);
  EXPECT_EQ(submit(again).kind, SubmitOutcome::Kind::duplicate);
  in_queue.execution.id = test_id(4);
  EXPECT_EQ(submit(in_queue).execution.id, test_id(2));
}

TEST_F(S3Store, AnIdentityIsFoundAndReleasedByItsHashInWhicheverScope) {
  for (const Scope::Tag tag : {Scope::Tag::type, Scope::Tag::queue, Scope::Tag::global, Scope::Tag::custom}) {
    Submission submission = Task().key("k" + std::to_string(static_cast<int>(tag)));
    submission.execution.identity->scope = {tag, tag == Scope::Tag::custom ? "mine" : ""};
    const IdentityHash hash = submission.execution.identity->hash;
    submit(submission);
    EXPECT_TRUE(store_->find_identity(hash));
    EXPECT_TRUE(store_->release_identity("default", hash));
    EXPECT_FALSE(store_->find_identity(hash));
    EXPECT_FALSE(store_->release_identity("default", hash));
  }
}

TEST_F(S3Store, APrefixThatWasEmptiedOrRecreatedIsNoticedByThePulse) {
  store_ = open_s3_store(objects_, {.pulse = 2ms});
  std::atomic<int> told = 0;
  store_->watch([&] {
    if (store_->is_replaced()) ++told, told.notify_all();
  });
  submit(Task().id(test_id(1)));
  while (objects_->names(std::string(s3::kPulse)).empty()) std::this_thread::yield();
  const std::string before = store_->identity();
  objects_->remove(objects_->names());
  told.wait(0);
  EXPECT_THROW(submit(Task()), Failure);
  EXPECT_THROW(store_->find("default", test_id(1)), Failure);
  EXPECT_THROW(store_->reopen(), Failure) << "there is no store";
  open_s3_store(objects_, {.pulse = 0ms});
  store_->reopen();
  EXPECT_FALSE(store_->is_replaced());
  EXPECT_NE(store_->identity(), before);
  EXPECT_FALSE(store_->find("default", test_id(1)));
  store_->watch({});
}

TEST_F(S3Store, AListReadsNothingOfAnotherNamespace) {
  submit(Task().name_space("mine"));
  for (int i = 0; i < 50; ++i) submit(Task().name_space("theirs"));
  ListFilter filter;
  filter.name_space = "mine";
  objects_->reset_counts();
  EXPECT_EQ(store_->list(filter).size(), 1u);
  EXPECT_EQ(objects_->counts()[ObjectRequest::Verb::get], 1);
  filter.name_space = "nobody";
  objects_->reset_counts();
  EXPECT_TRUE(store_->list(filter).empty());
  EXPECT_EQ(objects_->counts()[ObjectRequest::Verb::get], 0);
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

TEST_F(S3Store, WhatIsDeletedLeavesNothingBehindButThatItsQueueWasUsed) {
  submit(Task().key("k").ttl(1h));
  const Report report{token_of(claim().at(0)), Report::Completed{"1"}};
  store_->finish({&report, 1});
  for (int day = 0; day < 10; ++day) {
    clock_.advance(24h);
    store_->purge(100);
  }
  EXPECT_EQ(objects_->names(), (std::vector<std::string>{std::string(s3::kFormat), "used/default/work"}));
}

}  // namespace
}  // namespace hapax
