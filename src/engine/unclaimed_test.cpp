#include "engine/unclaimed.h"

#include <gmock/gmock.h>

#include "engine/local_engine.h"
#include "store/memory/memory_store.h"
#include "support/manual_clock.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class UnclaimedTest : public ::testing::Test {
 protected:
  UnclaimedTest() : store_(open_memory_store(clock_)), engine_(start_engine(store_, {})) {}
  ~UnclaimedTest() override { engine_->stop(); }

  ExecutionId submit(const std::string& type, const std::string& queue = "work", Kind kind = Kind::task) {
    SubmitRequest request;
    request.type = type;
    request.queue = queue;
    request.kind = kind;
    if (kind == Kind::workflow) request.idempotency_key = "workflow-" + type;
    const auto results = await<std::vector<SubmitResult>>(
        [&](auto reply) { engine_->submit("default", {std::move(request)}, std::move(reply)); });
    return std::get<Receipt>(results.at(0)).execution.id;
  }
  void announce(std::vector<std::string> types, bool tasks = true, bool workflows = true) {
    const WorkerInfo worker{.name_space = "default",
                            .name = "w",
                            .origin = {},
                            .queues = {"work"},
                            .types = std::move(types),
                            .tasks = tasks,
                            .workflows = workflows,
                            .last_seen_at = clock_.now()};
    store_->announce({&worker, 1});
  }
  std::vector<std::string> found() {
    std::vector<std::string> types;
    for (const Unclaimed& each : find_unclaimed(*engine_, "default", engine_->queues("default"), clock_.now())) {
      types.push_back(each.type);
    }
    return types;
  }

  ManualClock clock_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<LocalEngine> engine_;
};

TEST_F(UnclaimedTest, NothingIsFoundBeforeAMinuteIsOver) {
  submit("charge");
  clock_.advance(59s);
  EXPECT_THAT(found(), IsEmpty());
  clock_.advance(1s);
  EXPECT_THAT(found(), ElementsAre("charge"));
}

TEST_F(UnclaimedTest, TheOneThatHasWaitedLongestIsTheExample) {
  const ExecutionId first = submit("charge");
  clock_.advance(10s);
  submit("charge");
  clock_.advance(60s);
  const auto all = find_unclaimed(*engine_, "default", engine_->queues("default"), clock_.now());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].example, first);
  EXPECT_EQ(all[0].run_at, clock_.now() - 70s);
}

TEST_F(UnclaimedTest, WhatAWorkerClaimsIsNotFound) {
  submit("charge");
  submit("mail");
  submit("order", "work", Kind::workflow);
  clock_.advance(60s);
  EXPECT_THAT(found(), ElementsAre("charge", "mail", "order"));
  announce({"mail"});
  EXPECT_THAT(found(), ElementsAre("charge", "order"));
  announce({}, true, false);
  EXPECT_THAT(found(), ElementsAre("order"));
  announce({}, false, true);
  EXPECT_THAT(found(), ElementsAre("charge", "mail"));
  announce({});
  EXPECT_THAT(found(), IsEmpty());
  clock_.advance(60s);
  EXPECT_THAT(found(), ElementsAre("charge", "mail", "order"));
}

TEST_F(UnclaimedTest, WhatABusyWorkerClaimsIsNotFound) {
  submit("charge");
  submit("charge");
  announce({"charge"});
  ClaimRequest request;
  request.name_space = "default";
  request.queues = {"work"};
  request.worker = "w";
  request.lease = 1h;
  ASSERT_EQ(store_->claim({&request, 1}).at(0).executions.size(), 1U);
  clock_.advance(10min);
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(unclaimed_queues(*engine_, engine_->queue_counts(), clock_.now()), IsEmpty());
}

TEST_F(UnclaimedTest, APausedQueueIsNotLookedAt) {
  submit("charge");
  clock_.advance(60s);
  engine_->set_paused("default", "work", true);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(UnclaimedTest, QueuesThatNobodyClaims) {
  submit("charge");
  submit("charge", "other");
  clock_.advance(60s);
  submit("mail", "young");
  announce({"mail"});
  const auto counts = engine_->queue_counts();
  EXPECT_THAT(unclaimed_queues(*engine_, counts, clock_.now()), ElementsAre(std::pair("default", "other")));
}

}  // namespace
}  // namespace hapax
