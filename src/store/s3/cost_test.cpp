// What each verb costs, in requests. These numbers are promised in docs/s3.md.
#include <gtest/gtest.h>

#include "store/s3/documents/names.h"
#include "store/s3/memory_objects.h"
#include "store/s3/s3_store.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

struct Cost {
  int puts = 0, gets = 0, lists = 0, removes = 0;

  bool operator==(const Cost&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Cost& cost) {
  return out << cost.puts << " PUT, " << cost.gets << " GET, " << cost.lists << " LIST, " << cost.removes << " DELETE";
}

class S3Cost : public testing::Test {
 protected:
  // The first use of a queue by a process is one PUT more: here both were used.
  S3Cost() : objects_(std::make_shared<MemoryObjects>(clock_)), store_(open_s3_store(objects_, {.pulse = 0ms})) {
    for (const char* queue : {"work", "flows"}) cancel(submit(fresh(Task().queue(queue))).execution.id);
  }

  template <class Work>
  Cost of(Work work) {
    objects_->reset_counts();
    work();
    const auto counts = objects_->counts();
    const auto number = [&](ObjectRequest::Verb verb) { return counts.contains(verb) ? counts.at(verb) : 0; };
    return {number(ObjectRequest::Verb::put), number(ObjectRequest::Verb::get), number(ObjectRequest::Verb::list),
            number(ObjectRequest::Verb::remove)};
  }

  // With an id as an engine makes it.
  Submission fresh(Task task) { return task.id(ids_.next(clock_.now())); }

  void cancel(const ExecutionId& id) {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = id.to_string();
    request.target = id;
    store_->control({&request, 1});
  }

  SubmitOutcome submit(const Submission& submission) { return store_->submit({&submission, 1}).at(0); }
  ClaimOutcome claim(std::int32_t limit = 1) {
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {"work"};
    request.limit = limit;
    request.secret = test_secret(++secrets_);
    return store_->claim({&request, 1}).at(0);
  }
  // Thousands of another namespace's, in two queues.
  void run_many_of_another_namespace() {
    for (int i = 0; i < 3000; ++i) {
      Execution execution;
      execution.id = test_id(static_cast<std::uint64_t>(100'000 + i));
      execution.name_space = i % 2 ? "a" : "theirs";
      execution.queue = "work";
      execution.status = Status::running;
      execution.lease_expires_at = clock_.now() + 1h;
      s3::Hint hint = s3::wanted_hints(execution, clock_.now()).at(0);
      hint.mark = s3::new_mark();
      objects_->put({hint.name(), "", std::nullopt});
    }
  }
  Report completed(const Execution& claimed) { return {token_of(claimed), Report::Completed{"1"}}; }

  ManualClock clock_;
  std::shared_ptr<MemoryObjects> objects_;
  std::unique_ptr<Store> store_;
  IdGenerator ids_;
  std::uint64_t secrets_ = 0;
};

TEST_F(S3Cost, SubmitIsTheHintAndTheTask) {
  EXPECT_EQ(of([&] { submit(fresh(Task())); }), (Cost{.puts = 2}));
}

TEST_F(S3Cost, FirstUseOfAQueueIsOnePutMore) {
  EXPECT_EQ(of([&] { submit(fresh(Task().queue("new"))); }), (Cost{.puts = 3}));
  EXPECT_EQ(of([&] { submit(fresh(Task().queue("new"))); }), (Cost{.puts = 2}));
}

TEST_F(S3Cost, KeyedSubmitIsExactlyOnePutMore) {
  EXPECT_EQ(of([&] { submit(fresh(Task().key("k"))); }), (Cost{.puts = 3}));
}

TEST_F(S3Cost, DuplicateIsAFailedPutAndTwoGets) {
  submit(fresh(Task().key("k")));
  clock_.advance(1s);
  const Cost cost = of([&] { EXPECT_EQ(submit(fresh(Task().key("k"))).kind, SubmitOutcome::Kind::duplicate); });
  EXPECT_EQ(cost, (Cost{.puts = 1, .gets = 2}));
}

TEST_F(S3Cost, DuplicateOfACompletedTaskIsAFailedPutAndTwoGets) {
  submit(fresh(Task().key("k")));
  const Report report = completed(claim().executions.at(0));
  store_->finish({&report, 1});
  clock_.advance(1s);
  const Cost cost = of([&] { EXPECT_EQ(submit(fresh(Task().key("k"))).execution.result, "1"); });
  EXPECT_EQ(cost, (Cost{.puts = 1, .gets = 2}));
}

TEST_F(S3Cost, ClaimOfOneTask) {
  submit(fresh(Task()));
  EXPECT_EQ(of([&] { ASSERT_EQ(claim().executions.size(), 1u); }),
            (Cost{.puts = 2, .gets = 1, .lists = 1, .removes = 1}));
}

TEST_F(S3Cost, ClaimOfTenTasksListsOnce) {
  for (int i = 0; i < 10; ++i) submit(fresh(Task()));
  EXPECT_EQ(of([&] { ASSERT_EQ(claim(10).executions.size(), 10u); }),
            (Cost{.puts = 20, .gets = 10, .lists = 1, .removes = 10}));
}

TEST_F(S3Cost, ClaimThatFindsNothingIsOneList) {
  EXPECT_EQ(of([&] { claim(10); }), (Cost{.lists = 1}));
}

TEST_F(S3Cost, ClaimInALimitedQueueReadsItsObjectAndWhatRuns) {
  auto policies = std::make_shared<QueuePolicies>();
  policies->set("default", "work", {.max_running = 5});
  store_->set_policies(policies);
  submit(fresh(Task()));
  EXPECT_EQ(of([&] { ASSERT_EQ(claim().executions.size(), 1u); }),
            (Cost{.puts = 3, .gets = 2, .lists = 2, .removes = 1}));
}

TEST_F(S3Cost, AWorkerThatAnnouncesItselfIsReadAndWritten) {
  const WorkerInfo worker{.name_space = "default", .name = "w", .queues = {"work"}, .last_seen_at = clock_.now()};
  EXPECT_EQ(of([&] { store_->announce({&worker, 1}); }), (Cost{.puts = 1, .gets = 1}));
  EXPECT_EQ(of([&] { store_->announce({&worker, 1}); }), (Cost{.puts = 1, .gets = 1}));
}

TEST_F(S3Cost, WhatRunsInOtherNamespacesCostsNothing) {
  submit(fresh(Task()));
  claim();
  submit(fresh(Task()));
  run_many_of_another_namespace();
  ListFilter filter;
  filter.name_space = "default";
  filter.status = Status::running;
  EXPECT_EQ(of([&] { EXPECT_EQ(store_->list(filter).size(), 1u); }), (Cost{.gets = 1, .lists = 1}));
  EXPECT_EQ(of([&] { EXPECT_EQ(store_->count("default").at(1).running, 1); }), (Cost{.lists = 3}));
  auto policies = std::make_shared<QueuePolicies>();
  policies->set("default", "work", {.max_running = 5});
  store_->set_policies(policies);
  EXPECT_EQ(of([&] { ASSERT_EQ(claim().executions.size(), 1u); }),
            (Cost{.puts = 3, .gets = 2, .lists = 2, .removes = 1}));
}

// The leases of each queue are in a folder of their own, and a folder that has none that ended is left after a page.
TEST_F(S3Cost, SweepFindsTheLeaseThatEndedAmongThousandsThatGoOn) {
  submit(fresh(Task().queue("work")));
  claim();
  submit(fresh(Task().queue("work").delay(2h)));
  run_many_of_another_namespace();
  clock_.advance(59s);
  EXPECT_EQ(store_->sweep(100).effects.next_due, clock_.now() + 1s);
  clock_.advance(1s);
  const Cost cost = of([&] { EXPECT_EQ(store_->sweep(100).effects.ready.size(), 1u); });
  EXPECT_LE(cost.lists, 12);
  ListFilter filter;
  filter.name_space = "default";
  filter.status = Status::running;
  EXPECT_TRUE(store_->list(filter).empty());
}

TEST_F(S3Cost, HeartbeatIsReadAndWrite) {
  submit(fresh(Task()));
  const Extension extension{token_of(claim().executions.at(0)), 60s};
  clock_.advance(20s);
  EXPECT_EQ(of([&] { EXPECT_TRUE(store_->extend({&extension, 1}).at(0).ok); }), (Cost{.puts = 1, .gets = 1}));
}

TEST_F(S3Cost, FinishMovesTheTaskToTheClosedOnes) {
  submit(fresh(Task().key("k")));
  const Report report = completed(claim().executions.at(0));
  EXPECT_EQ(of([&] { EXPECT_TRUE(store_->finish({&report, 1}).at(0).accepted); }),
            (Cost{.puts = 2, .gets = 1, .removes = 1}));
}

TEST_F(S3Cost, StepsOfOneRunThatEndTogetherAreOneTransaction) {
  Submission start = fresh(Task("flow").kind(Kind::workflow).queue("flows"));
  start.execution.idempotency_key = "w";
  start.execution.identity = workflow_identity("default", "w");
  submit(start);
  ClaimRequest request;
  request.name_space = "default";
  request.queues = {"flows"};
  request.tasks = false;
  request.workflows = true;
  Turn turn;
  turn.token = token_of(store_->claim({&request, 1}).at(0).executions.at(0));
  for (std::int32_t step = 1; step <= 10; ++step) {
    Event event;
    event.step = step;
    event.name = "work";
    turn.events.push_back(event);
    turn.starts.push_back({step, Task()});
  }
  // The run is locked and written, the ten steps are created with two hints each; the commit.
  EXPECT_EQ(of([&] { EXPECT_TRUE(store_->commit_turns({&turn, 1}).at(0).accepted); }),
            (Cost{.puts = 2 + 30 + 1, .gets = 11, .removes = 2}));
  std::vector<Report> reports;
  for (const Execution& claimed : claim(10).executions) reports.push_back(completed(claimed));
  ASSERT_EQ(reports.size(), 10u);
  const Cost cost = of([&] { store_->finish(reports); });
  EXPECT_EQ(cost.puts,
            11 * 2 + 10 + 1 + 1);  // locked and written, a closed hint each, the run's ready hint, the commit
}

TEST_F(S3Cost, SweepWithNothingToDo) {
  EXPECT_EQ(of([&] { store_->sweep(100); }), (Cost{.lists = 3}));
}

TEST_F(S3Cost, FindIsOneGet) {
  const Submission submission = fresh(Task());
  submit(submission);
  EXPECT_EQ(of([&] { EXPECT_TRUE(store_->find("default", submission.execution.id)); }), (Cost{.gets = 1}));
}

TEST_F(S3Cost, LookingAnIdentityUpInItsScopeIsTwoGets) {
  const Submission submission = fresh(Task().key("k"));
  submit(submission);
  const Execution& execution = submission.execution;
  const NamedScope scope = name_scope(execution.identity->scope, execution.type, execution.queue);
  EXPECT_EQ(of([&] { EXPECT_TRUE(store_->find_identity_in(scope, execution.identity->hash)); }), (Cost{.gets = 2}));
}

TEST_F(S3Cost, ABatchOfSubmitsIsThreeRoundsOfRequests) {
  std::vector<Submission> submissions;
  for (int i = 0; i < 100; ++i) submissions.push_back(fresh(Task().key("k" + std::to_string(i))));
  EXPECT_EQ(of([&] { store_->submit(submissions); }), (Cost{.puts = 300}));
}

}  // namespace
}  // namespace hapax
