// What a worker does not know, or has not started when it stops, goes back unharmed to workers that can run it.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "engine/check_request.h"
#include "sdk/worker.h"
#include "support/place.h"

namespace hapax::detail {
namespace {

using namespace std::chrono_literals;

// More types than a claim may name: their worker names none, and gets what it does not know, too.
std::vector<std::string> too_many_types() {
  std::vector<std::string> types{"charge"};
  for (std::size_t i = 0; i < kMaxClaimTypes; ++i) types.push_back("type-" + std::to_string(i));
  return types;
}

class GivingBack : public ::testing::TestWithParam<std::string> {
 protected:
  // A worker of its own generation on the same store.
  struct Generation {
    Generation(const std::shared_ptr<Engine>& engine, const std::vector<std::string>& types)
        : app(Opened{engine, {}, {}}, "default") {
      for (const std::string& type : types) app.declare(type, DeclaredTask{{}, handler_of([] { return 1; })}, nullptr);
    }
    AppState app;
  };

  Generation generation(const std::vector<std::string>& types) { return {engine_, types}; }

  static void work(AppState& app, Duration until_idle = 300ms) {
    WorkOptions options;
    options.handle_signals = false;
    options.threads = 1;
    options.until_idle_for = until_idle;
    Worker(app, options).run();
  }

  ExecutionId submit(const std::string& type, std::int32_t priority = 0) {
    SubmitRequest request;
    request.type = type;
    request.priority = priority;
    request.max_attempts = 1;
    auto results =
        await<std::vector<SubmitResult>>([&](auto reply) { engine_->submit("default", {request}, std::move(reply)); });
    return std::get<Receipt>(results.at(0)).execution.id;
  }

  Execution find(const ExecutionId& id) { return engine_->find("default", id).value(); }

  const Place place_{GetParam()};
  const std::shared_ptr<Engine> engine_ = open_engine(place_.url(), {}).engine;
};
INSTANTIATE_TEST_SUITE_P(Urls, GivingBack, ::testing::Values("memory", "sqlite", "http"),
                         [](const auto& info) { return info.param; });

TEST_P(GivingBack, ATaskOfAnUnknownTypeIsLeftForAWorkerThatKnowsIt) {
  Generation old = generation({"charge"}), next = generation({"charge", "fraud_check"});
  const ExecutionId id = submit("fraud_check");
  work(old.app);
  EXPECT_EQ(find(id).status, Status::pending);
  EXPECT_EQ(find(id).attempt, 0);
  EXPECT_TRUE(find(id).failed_attempts.empty());
  work(next.app);
  EXPECT_EQ(find(id).status, Status::completed);
  EXPECT_EQ(find(id).attempt, 1);
}

TEST_P(GivingBack, AWaitingWorkerThatKnowsTheTypeGetsItAtOnce) {
  Generation old = generation({"charge"}), next = generation({"fraud_check"});
  WorkOptions options;
  options.handle_signals = false;
  std::jthread first([&] { Worker(old.app, options).run(); });
  std::jthread second([&] { Worker(next.app, options).run(); });
  for (int i = 0; i < 20; ++i) {
    const ExecutionId id = submit("fraud_check");
    const auto closed = await<std::optional<Execution>>(
        [&](auto reply) { engine_->wait_closed("default", id, 30s, std::move(reply)); });
    EXPECT_EQ(closed->status, Status::completed);
  }
  old.app.stop_requested = next.app.stop_requested = true;
}

TEST_P(GivingBack, AnUnknownTypeIsNeitherClaimedNorSpokenOf) {
  Generation old = generation({"charge"});
  submit("fraud_check");
  testing::internal::CaptureStderr();
  work(old.app);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_P(GivingBack, ItIsSaidOnceForEachType) {
  Generation old = generation(too_many_types());
  for (int i = 0; i < 3; ++i) submit("fraud_check");
  submit("score");
  testing::internal::CaptureStderr();
  work(old.app, 3s);
  const std::string said = testing::internal::GetCapturedStderr();
  const auto times = [&](const std::string& words) {
    int count = 0;
    for (std::size_t at = said.find(words); at != std::string::npos; at = said.find(words, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(times("has no task 'fraud_check' declared"), 1) << said;
  EXPECT_EQ(times("has no task 'score' declared"), 1) << said;
}

TEST_P(GivingBack, TasksOfUnknownTypesDoNotHideWhatWaitsBehindThem) {
  Generation old = generation(too_many_types());
  std::vector<ExecutionId> unknown, known;
  for (int i = 0; i < 150; ++i) unknown.push_back(submit("fraud_check", 10));
  for (int i = 0; i < 5; ++i) known.push_back(submit("charge"));
  work(old.app, 3s);
  for (const ExecutionId& id : known) EXPECT_EQ(find(id).status, Status::completed);
  for (const ExecutionId& id : unknown) {
    EXPECT_EQ(find(id).status, Status::pending);
    EXPECT_EQ(find(id).attempt, 0);
  }
}

// Queued behind a handler that has not ended, as quick handlers have them.
TEST_P(GivingBack, WhatIsNotStartedIsGivenBackWhenTheWorkerStops) {
  constexpr int kQuick = 200;
  std::atomic<int> runs = 0;
  std::latch blocked(1), go(1);
  AppState app(Opened{engine_, {}, {}}, "default");
  app.declare("charge", DeclaredTask{{}, handler_of([&] {
                                       if (++runs != kQuick) return;
                                       blocked.count_down();
                                       go.wait();
                                     })},
              nullptr);
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 2 * kQuick; ++i) ids.push_back(submit("charge"));
  WorkOptions options;
  options.handle_signals = false;
  options.threads = 1;
  std::jthread worker([&] { Worker(app, options).run(); });
  blocked.wait();
  app.stop_requested = true;
  // It gives back before it has ended.
  const auto is_running = [&](const ExecutionId& id) { return find(id).status == Status::running; };
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (std::count_if(ids.begin(), ids.end(), is_running) > 1 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), is_running), 1);
  go.count_down();
  worker.join();
  EXPECT_EQ(runs, kQuick);
  for (const ExecutionId& id : ids) {
    const Execution task = find(id);
    EXPECT_EQ(task.attempt, task.status == Status::completed ? 1 : 0);
    EXPECT_NE(task.status, Status::running);
  }
}

// A claim and a give-back are two commits each: in a loop they would keep the store busy.
TEST(GivingBackOnAnEngine, AnUnknownTypeIsNotClaimedOverAndOver) {
  const std::shared_ptr<LocalEngine> engine = start_engine(open_store("memory:"), {});
  AppState app(Opened{engine, {}, {}}, "default");
  for (const std::string& type : too_many_types()) app.declare(type, DeclaredTask{{}, handler_of([] {})}, nullptr);
  SubmitRequest request;
  request.type = "fraud_check";
  await<std::vector<SubmitResult>>([&](auto reply) { engine->submit("default", {request}, std::move(reply)); });
  WorkOptions options;
  options.handle_signals = false;
  options.until_idle_for = 2s;
  Worker(app, options).run();
  EXPECT_GE(engine->counters().claimed, 2);
  EXPECT_LE(engine->counters().claimed, 8);
}

}  // namespace
}  // namespace hapax::detail
