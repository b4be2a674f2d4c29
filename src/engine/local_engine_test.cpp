#include "engine/local_engine.h"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "store/memory/memory_store.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using Executions = std::vector<Execution>;

constexpr auto kLong = 20s;  // longer than any test takes; a test that waits this long has failed

class LocalEngineTest : public ::testing::Test {
 protected:
  void start(EngineOptions options = {}) { engine_ = start_engine(open_memory_store(clock_), std::move(options)); }

  static SubmitRequest task(const std::string& type = "greet") {
    SubmitRequest request;
    request.type = type;
    return request;
  }

  SubmitResult submit(SubmitRequest request) {
    std::vector<SubmitRequest> requests;
    requests.push_back(std::move(request));
    auto results = await<std::vector<SubmitResult>>(
        [&](auto reply) { engine_->submit("default", std::move(requests), std::move(reply)); });
    return results.at(0);
  }

  Receipt accepted(SubmitRequest request) { return std::get<Receipt>(submit(std::move(request))); }
  Refusal refused(SubmitRequest request) { return std::get<Refusal>(submit(std::move(request))); }

  struct PendingClaim {
    std::future<Executions> claimed;
    std::shared_ptr<Waiting> waiting;
  };

  PendingClaim begin_claim(std::vector<std::string> queues = {"default"}, std::int32_t limit = 1, Duration wait = kLong,
                           Duration lease = kLong) {
    auto promise = std::make_shared<std::promise<Executions>>();
    PendingClaim pending;
    pending.claimed = promise->get_future();
    pending.waiting = engine_->claim({.name_space = "default",
                                      .queues = std::move(queues),
                                      .limit = limit,
                                      .worker = "w",
                                      .lease = lease,
                                      .wait = wait},
                                     [promise](Answer<std::vector<Claimed>> answer) {
                                       try {
                                         Executions executions;
                                         for (Claimed& each : std::move(answer).get()) {
                                           executions.push_back(std::move(each.execution));
                                         }
                                         promise->set_value(std::move(executions));
                                       } catch (...) {
                                         promise->set_exception(std::current_exception());
                                       }
                                     });
    return pending;
  }

  Executions claim(std::int32_t limit = 1, Duration wait = 0ms, Duration lease = kLong) {
    return begin_claim({"default"}, limit, wait, lease).claimed.get();
  }

  // Until so many calls wait at the desk, looking or asleep.
  void await_waiting(std::int64_t count) {
    while (engine_->counters().waiting_claims != count) std::this_thread::yield();
  }

  FinishOutcome finish(const Execution& execution, std::variant<Report::Completed, Report::Failed> outcome) {
    std::vector<Report> reports;
    reports.push_back({{execution.id, execution.attempt, *execution.lease_secret}, std::move(outcome)});
    return await<std::vector<FinishOutcome>>([&](auto reply) { engine_->finish(std::move(reports), std::move(reply)); })
        .at(0);
  }

  int keys_ = 0;
  SystemClock clock_;
  std::unique_ptr<LocalEngine> engine_;
};

TEST_F(LocalEngineTest, ASubmissionWakesAClaimThatWaits) {
  start();
  auto waiting = begin_claim();
  await_waiting(1);
  const Receipt receipt = accepted(task());
  EXPECT_EQ(waiting.claimed.get().at(0).id, receipt.execution.id);
}

TEST_F(LocalEngineTest, EveryOneOfManyWaitingClaimsGetsOneOfManySubmissions) {
  start();
  std::vector<PendingClaim> waiting;
  for (int i = 0; i < 200; ++i) waiting.push_back(begin_claim());
  for (int i = 0; i < 200; ++i) accepted(task());
  std::set<ExecutionId> ids;
  for (auto& call : waiting) ids.insert(call.claimed.get().at(0).id);
  EXPECT_EQ(ids.size(), 200u);
}

TEST_F(LocalEngineTest, ABatchWakesAsManyClaimsAsItHasTasks) {
  start();
  std::vector<PendingClaim> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(begin_claim());
  await_waiting(5);
  std::vector<SubmitRequest> requests(5, task());
  await<std::vector<SubmitResult>>(
      [&](auto reply) { engine_->submit("default", std::move(requests), std::move(reply)); });
  for (auto& call : waiting) EXPECT_EQ(call.claimed.get().size(), 1u);
}

TEST_F(LocalEngineTest, ADelayedTaskWakesAWaitingClaimWhenItsTimeComes) {
  start();
  auto waiting = begin_claim();
  await_waiting(1);
  SubmitRequest request = task();
  request.delay = 60ms;
  const Time run_at = accepted(std::move(request)).execution.run_at;
  EXPECT_EQ(waiting.claimed.get().at(0).run_at, run_at);
  EXPECT_GE(clock_.now(), run_at);
}

TEST_F(LocalEngineTest, AClaimOverSeveralQueuesIsWokenByAnyOfThem) {
  start();
  auto waiting = begin_claim({"a", "b", "c"});
  await_waiting(1);
  SubmitRequest request = task();
  request.queue = "c";
  accepted(std::move(request));
  EXPECT_EQ(waiting.claimed.get().at(0).queue, "c");
}

TEST_F(LocalEngineTest, AWaitThatEndsIsAnsweredWithNothing) {
  start();
  EXPECT_TRUE(claim(1, 30ms).empty());
  EXPECT_EQ(engine_->counters().waiting_claims, 0);
}

TEST_F(LocalEngineTest, AClaimWhoseCallerHungUpTakesNothing) {
  start();
  auto gone = begin_claim();
  await_waiting(1);
  gone.waiting->cancel();
  EXPECT_TRUE(gone.claimed.get().empty());
  accepted(task());
  EXPECT_EQ(claim().size(), 1u);
}

TEST_F(LocalEngineTest, ALeaseThatEndsMakesTheTaskClaimableForWhoeverWaits) {
  start();
  accepted(task());
  const Executions first = claim(1, 0ms, 40ms);
  ASSERT_EQ(first.size(), 1u);
  const Executions second = claim(1, kLong);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].id, first[0].id);
  EXPECT_EQ(second[0].attempt, 2);
  EXPECT_FALSE(finish(first[0], Report::Completed{}).accepted);
  EXPECT_TRUE(finish(second[0], Report::Completed{}).accepted);
}

TEST_F(LocalEngineTest, ARateLimitedQueueWakesAWaitingClaimWithTheNextPermit) {
  EngineOptions options;
  options.queues["default"].rate_limit = parse_rate("20/sec");
  options.queues["default"].rate_limit->burst = 1;
  start(std::move(options));
  for (int i = 0; i < 3; ++i) accepted(task());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(claim(1, kLong).size(), 1u);
}

TEST_F(LocalEngineTest, AFinishMakesRoomUnderMaxRunningForWhoeverWaits) {
  EngineOptions options;
  options.queues["default"].max_running = 1;
  start(std::move(options));
  accepted(task());
  accepted(task());
  const Executions first = claim();
  auto waiting = begin_claim();
  await_waiting(1);
  finish(first.at(0), Report::Completed{});
  EXPECT_EQ(waiting.claimed.get().size(), 1u);
}

TEST_F(LocalEngineTest, AFinishFreesItsConcurrencyKeyForWhoeverWaits) {
  start();
  for (int i = 0; i < 2; ++i) {
    SubmitRequest request = task();
    request.concurrency_key = "customer-1";
    accepted(std::move(request));
  }
  const Executions first = claim();
  auto waiting = begin_claim();
  await_waiting(1);
  finish(first.at(0), Report::Completed{});
  EXPECT_EQ(waiting.claimed.get().size(), 1u);
}

TEST_F(LocalEngineTest, UnpausingAQueueWakesWhoeverWaits) {
  start();
  EXPECT_TRUE(engine_->set_paused("default", "default", true).settings.paused.value());
  accepted(task());
  auto waiting = begin_claim();
  await_waiting(1);
  engine_->set_paused("default", "default", false);
  EXPECT_EQ(waiting.claimed.get().size(), 1u);
}

TEST_F(LocalEngineTest, PausingAgainstTheFileIsRefused) {
  EngineOptions options;
  options.queues["held"].paused = true;
  options.queues["open"].retention = 1h;
  start(std::move(options));
  EXPECT_THROW(engine_->set_paused("default", "held", false), DecidedByFile);
  EXPECT_EQ(engine_->set_paused("default", "held", true).settings.paused, true);
  EXPECT_EQ(engine_->set_paused("default", "open", true).settings.paused, true);
}

TEST_F(LocalEngineTest, AWaitForAResultEndsWhenTheTaskIsFinished) {
  start();
  const Receipt receipt = accepted(task());
  std::promise<std::optional<Execution>> promise;
  engine_->wait_closed("default", receipt.execution.id, kLong,
                       [&](Answer<std::optional<Execution>> answer) { promise.set_value(std::move(answer).get()); });
  finish(claim().at(0), Report::Completed{"42"});
  const auto execution = promise.get_future().get();
  EXPECT_EQ(execution->status, Status::completed);
  EXPECT_EQ(execution->result, "42");
}

TEST_F(LocalEngineTest, AWaitForAResultThatIsNotKeptStillGetsIt) {
  EngineOptions options;
  options.queues["default"].retention = Duration(0);
  start(std::move(options));
  const Receipt receipt = accepted(task());
  std::promise<std::optional<Execution>> promise;
  engine_->wait_closed("default", receipt.execution.id, kLong,
                       [&](Answer<std::optional<Execution>> answer) { promise.set_value(std::move(answer).get()); });
  while (engine_->counters().waiting_results != 1) std::this_thread::yield();
  finish(claim().at(0), Report::Completed{"42"});
  EXPECT_EQ(promise.get_future().get()->result, "42");
  EXPECT_FALSE(engine_->find("default", receipt.execution.id));
}

TEST_F(LocalEngineTest, StoppingEndsEveryWaitAndRefusesWhatComesAfter) {
  start();
  auto waiting = begin_claim();
  await_waiting(1);
  engine_->stop();
  EXPECT_TRUE(waiting.claimed.get().empty());
  EXPECT_THROW(submit(task()), Failure);
  EXPECT_THROW(claim(), Failure);
}

TEST_F(LocalEngineTest, TheFirstRuleThatAppliesDecidesTheIdentity) {
  EngineOptions options;
  options.types["declared"] = {};
  options.types["by_caller"].identity = Strategy::caller_provided;
  start(std::move(options));

  EXPECT_FALSE(accepted(task("undeclared")).match);
  EXPECT_EQ(accepted(task("declared")).match->identity.strategy, Strategy::strict);
  EXPECT_EQ(refused(task("by_caller")).code, Refusal::Code::idempotency_key_required);

  SubmitRequest keyed = task("declared");
  keyed.idempotency_key = "k";
  EXPECT_EQ(accepted(keyed).match->identity.strategy, Strategy::caller_provided);

  SubmitRequest named = task("declared");
  named.identity = Strategy::always_unique;
  EXPECT_FALSE(accepted(named).match);
}

TEST_F(LocalEngineTest, AMissingIdentityFieldIsRefusedWithItsPlace) {
  start();
  SubmitRequest request = task();
  request.identity = Strategy::contextual;
  request.identity_fields = {"/order/id"};
  request.input = parse_json(R"({"order":{}})");
  const Refusal refusal = refused(std::move(request));
  EXPECT_EQ(refusal.code, Refusal::Code::identity_field_missing);
  EXPECT_EQ(refusal.pointer, "/input/order/id");
}

TEST_F(LocalEngineTest, TheNearestTtlWins) {
  EngineOptions options;
  options.idempotency_ttl = 4h;
  options.queues["slow"].idempotency_ttl = 3h;
  options.types["typed"].idempotency_ttl = 2h;
  start(std::move(options));
  const auto ttl = [&](SubmitRequest request, std::optional<Duration> own) {
    request.idempotency_key = "k" + std::to_string(keys_++);
    request.idempotency_ttl = own;
    const Receipt receipt = accepted(std::move(request));
    const auto found = engine_->find_identity("default", receipt.execution.type, {}, receipt.execution.queue,
                                              *receipt.execution.idempotency_key);
    return *found->entry.expires_at - receipt.execution.created_at;
  };
  SubmitRequest slow = task();
  slow.queue = "slow";
  SubmitRequest typed = task("typed");
  typed.queue = "slow";
  EXPECT_EQ(ttl(task(), {}), 4h);
  EXPECT_EQ(ttl(slow, {}), 3h);
  EXPECT_EQ(ttl(typed, {}), 2h);
  EXPECT_EQ(ttl(typed, 1h), 1h);
}

TEST_F(LocalEngineTest, WhatTheFileNamesWinsOverWhatTheApiPuts) {
  EngineOptions options;
  options.queues["payments"].retention = Duration(30 * 24h);
  start(std::move(options));
  QueueSettings settings;
  settings.retention = 1h;
  settings.max_running = 7;
  const QueueView view = engine_->put_queue("default", "payments", settings);
  EXPECT_EQ(view.settings.retention, Duration(30 * 24h));
  EXPECT_EQ(view.settings.max_running, 7);
  EXPECT_THAT(view.from_file, ::testing::ElementsAre("retention"));
}

}  // namespace
}  // namespace hapax
