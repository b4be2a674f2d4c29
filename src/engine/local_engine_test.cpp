#include "engine/local_engine.h"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "core/field.h"
#include "store/forwarding_store.h"
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

  FinishOutcome finish(const Execution& execution, const decltype(Report::outcome)& outcome) {
    std::vector<Report> reports;
    reports.push_back({{execution.id, execution.attempt, *execution.lease_secret}, outcome});
    return await<std::vector<FinishOutcome>>([&](auto reply) { engine_->finish(std::move(reports), std::move(reply)); })
        .at(0);
  }

  ControlOutcome control(ControlRequest request) {
    return await<ControlOutcome>([&](auto reply) { engine_->control(std::move(request), std::move(reply)); });
  }

  // Starts a workflow whose first turn asks for these tasks; gives the commands as its history has them.
  std::vector<Event> run_steps(const std::vector<SubmitRequest>& tasks) {
    SubmitRequest start = task("flow");
    start.kind = Kind::workflow;
    start.idempotency_key = "w" + std::to_string(keys_++);
    const ExecutionId run = accepted(start).execution.id;
    const auto claims = await<std::vector<Claimed>>([&](auto reply) {
      ClaimCall call;
      call.name_space = "default";
      call.queues = {"default"};
      call.tasks = false;
      call.workflows = true;
      call.worker = "w";
      engine_->claim(std::move(call), std::move(reply));
    });
    TurnRequest turn;
    turn.token = {run, claims.at(0).execution.attempt, *claims.at(0).execution.lease_secret};
    turn.name_space = "default";
    for (const SubmitRequest& each : tasks) {
      TurnRequest::Command command;
      command.event.kind = Event::Kind::task;
      command.event.step = static_cast<std::int32_t>(turn.commands.size()) + 1;
      command.event.name = each.type;
      command.start = each;
      turn.commands.push_back(std::move(command));
    }
    std::vector<TurnRequest> turns;
    turns.push_back(std::move(turn));
    await<std::vector<TurnOutcome>>([&](auto reply) { engine_->commit_turns(std::move(turns), std::move(reply)); });
    std::vector<Event> commands = engine_->history("default", run, 0, 100);
    std::erase_if(commands, [](const Event& event) { return !is_command(event.kind); });
    return commands;
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
  const Executions first = claim(1, 0ms, 1s);  // the shortest there is
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

TEST_F(LocalEngineTest, TuningATypeDoesNotChangeWhatIsTheSame) {
  EngineOptions options;
  options.types["in_file"].max_attempts = 5;
  start(std::move(options));
  const auto tuned = engine_->patch_type("default", "tick", parse_json(R"({"max_attempts":7})"));
  EXPECT_FALSE(tuned.declared);
  EXPECT_EQ(tuned.identity, (TypeIdentity{Strategy::always_unique, TypeIdentity::Source::undeclared}));
  EXPECT_FALSE(accepted(task("tick")).match);
  EXPECT_EQ(accepted(task("tick")).execution.max_attempts, 7);

  // A declared one stays declared, and what was stated stays stated.
  engine_->put_type("default", "put", {});
  EXPECT_EQ(engine_->patch_type("default", "put", parse_json(R"({"priority":1})")).identity,
            (TypeIdentity{Strategy::strict, TypeIdentity::Source::declared}));
  EXPECT_EQ(engine_->patch_type("default", "in_file", parse_json(R"({"priority":1})")).identity,
            (TypeIdentity{Strategy::strict, TypeIdentity::Source::declared}));
  engine_->patch_type("default", "tick", parse_json(R"({"identity":"strict"})"));
  EXPECT_EQ(accepted(task("tick")).match->identity.strategy, Strategy::strict);
  EXPECT_EQ(engine_->type("default", "tick").identity.source, TypeIdentity::Source::api);
  engine_->patch_type("default", "tick", parse_json(R"({"identity":null})"));
  EXPECT_FALSE(accepted(task("tick")).match);
  EXPECT_THROW(engine_->patch_type("default", "tick", parse_json(R"({"color":null})")), InvalidField);
  EXPECT_THROW(engine_->patch_type("default", "tick", parse_json("7")), InvalidField);
}

TEST_F(LocalEngineTest, ATypeThatWasPutIsStillDeclaredAfterARestart) {
  const std::shared_ptr<Store> store = open_memory_store(clock_);
  engine_ = start_engine(store, {});
  engine_->put_type("default", "put", {});
  engine_->patch_type("default", "tuned", parse_json(R"({"max_attempts":7})"));
  engine_ = start_engine(store, {});
  EXPECT_TRUE(engine_->type("default", "put").declared);
  EXPECT_FALSE(engine_->type("default", "tuned").declared);
  EXPECT_EQ(engine_->type("default", "tuned").settings.max_attempts, 7);
}

TEST_F(LocalEngineTest, ADefaultIdentityNeverMergesSteps) {
  EngineOptions options;
  options.undeclared = Strategy::strict;
  options.types["in_file"].max_attempts = 5;
  start(std::move(options));
  engine_->put_type("default", "put", {});
  engine_->patch_type("default", "tuned", parse_json(R"({"max_attempts":7})"));
  for (const std::string type : {"in_file", "put", "tuned", "unknown"}) {
    SCOPED_TRACE(type);
    accepted(task(type));  // which is the owner, for submissions of a caller
    EXPECT_FALSE(accepted(task(type)).created);
    const std::vector<Event> steps = run_steps({task(type), task(type)});
    EXPECT_NE(steps.at(0).execution, steps.at(1).execution);
    for (const Event& step : steps) EXPECT_FALSE(is_deduplicated(step));
  }
}

TEST_F(LocalEngineTest, AStepFollowsTheIdentityThatItsTypeStates) {
  EngineOptions options;
  options.types["in_file"].identity = Strategy::strict;
  start(std::move(options));
  engine_->patch_type("default", "tuned", parse_json(R"({"identity":"strict"})"));
  for (const std::string type : {"in_file", "tuned"}) {
    SCOPED_TRACE(type);
    const ExecutionId before = accepted(task(type)).execution.id;
    for (const Event& step : run_steps({task(type), task(type)})) {
      EXPECT_EQ(step.execution, before);
      EXPECT_TRUE(is_deduplicated(step));
    }
  }
  SubmitRequest named = task("unknown");
  named.identity = Strategy::strict;  // by the step itself
  const std::vector<Event> steps = run_steps({named, named});
  EXPECT_FALSE(is_deduplicated(steps.at(0)));
  EXPECT_TRUE(is_deduplicated(steps.at(1)));
}

// Counts how often request keys are cleaned up.
class CountingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::int64_t purge_requests(std::int32_t limit) override {
    ++cleanups;
    return ForwardingStore::purge_requests(limit);
  }
  std::atomic<int> cleanups = 0;
};

TEST_F(LocalEngineTest, OperationsTriggerTheCleanupOfRequestKeysOnceInEachInterval) {
  const auto run_two = [&](Duration interval) {
    const auto store = std::make_shared<CountingStore>(open_memory_store(clock_));
    EngineOptions options;
    options.request_cleanup_interval = interval;
    engine_ = start_engine(store, std::move(options));
    for (const char* key : {"a", "b"}) {
      ControlRequest cancel;
      cancel.name_space = "default";
      cancel.request_key = key;
      control(cancel);
      while (store->cleanups == 0) std::this_thread::yield();
    }
    engine_->stop();
    return store->cleanups.load();
  };
  EXPECT_EQ(run_two(1h), 1);
  EXPECT_GE(run_two(0ms), 1);
}

TEST_F(LocalEngineTest, AnOwnerThatDidNotCompleteAlreadyExists) {
  start();
  SubmitRequest request = task();
  request.idempotency_key = "k";
  request.max_attempts = 1;
  request.reuse = Reuse::reject;
  request.on_duplicate = OnDuplicate::error;
  const ExecutionId id = accepted(request).execution.id;
  ControlRequest cancel;
  cancel.name_space = "default";
  cancel.request_key = "r";
  cancel.target = id;
  control(cancel);
  const Refusal refusal = refused(request);
  EXPECT_EQ(refusal.code, Refusal::Code::task_already_exists);
  EXPECT_EQ(refusal.existing->status, Status::cancelled);
}

TEST_F(LocalEngineTest, AConflictSaysWhetherTypeOrInputDiffers) {
  start();
  SubmitRequest charge = task("charge");
  charge.idempotency_key = "k";
  charge.scope = Scope{Scope::Tag::global, ""};
  accepted(charge);
  SubmitRequest refund = charge;
  refund.type = "refund";
  refund.input = parse_json("2");
  EXPECT_EQ(refused(refund).code, Refusal::Code::idempotency_conflict);
  EXPECT_THAT(refused(refund).message, ::testing::HasSubstr("another type: 'charge', not 'refund'"));
  charge.input = parse_json("2");
  EXPECT_THAT(refused(charge).message, ::testing::HasSubstr("another input"));
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
