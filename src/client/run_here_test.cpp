// Submit and run here, through the engine in the process and through the one over HTTP: a receipt with a claim.
#include <gtest/gtest.h>

#include "client/remote_engine.h"
#include "core/canonical_json.h"
#include "engine/local_engine.h"
#include "engine/submit.h"
#include "http/server.h"
#include "store/memory/memory_store.h"
#include "support/cutting_proxy.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const std::string kSpace = "default";

std::string url_of(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

ServerOptions any_port() {
  ServerOptions options;
  options.port = 0;
  return options;
}

SubmitRequest request(const std::string& worker = "here", Duration lease = 30s) {
  SubmitRequest request;
  request.type = "charge";
  request.input = parse_json("7");
  request.idempotency_key = "order-1";
  static IdGenerator ids;
  request.id = ids.next(Time(std::chrono::days(20000)));
  request.run_here = {worker, lease};
  return request;
}

SubmitResult submit(Engine& engine, const SubmitRequest& one) {
  return await<std::vector<SubmitResult>>([&](auto reply) { engine.submit(kSpace, {one}, reply); }).at(0);
}

struct Engines {
  ManualClock clock_;
  std::unique_ptr<LocalEngine> local_ = start_engine(open_memory_store(clock_), {});
  std::unique_ptr<Server> server_ = start_server(*local_, any_port());
  std::unique_ptr<Engine> remote_ = connect_engine({.url = url_of(server_->port()), .token = "", .name_space = kSpace});
};

class RunHere : public Engines, public testing::TestWithParam<bool> {
 protected:
  Engine& engine() { return GetParam() ? *remote_ : *local_; }

  Receipt receipt(const SubmitRequest& one) { return std::get<Receipt>(submit(engine(), one)); }
  bool finish(const Execution& execution) {
    std::vector<Report> reports{{token_of(execution), Report::Completed{"42"}, kSpace}};
    return await<std::vector<FinishOutcome>>([&](auto reply) { engine().finish(reports, reply); }).at(0).accepted;
  }
  std::vector<Claimed> claim() {
    ClaimCall call{.name_space = kSpace, .queues = {"default"}, .limit = 9, .worker = "w"};
    return await<std::vector<Claimed>>([&](auto reply) { engine().claim(call, reply); });
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, RunHere, testing::Bool(),
                         [](const auto& info) { return info.param ? "Remote" : "Local"; });

TEST_P(RunHere, TheReceiptHasAClaim) {
  const Receipt created = receipt(request());
  EXPECT_TRUE(created.created);
  EXPECT_TRUE(created.claimed);
  EXPECT_EQ(created.execution.status, Status::running);
  EXPECT_EQ(created.execution.worker, "here");
  EXPECT_EQ(created.match->identity.strategy, Strategy::caller_provided);
  EXPECT_TRUE(claim().empty());
  EXPECT_TRUE(finish(created.execution));

  const Receipt later = receipt(request());
  EXPECT_FALSE(later.created);
  EXPECT_FALSE(later.claimed);
  EXPECT_EQ(later.execution.result, "42");
}

TEST_P(RunHere, TheSameAgainGetsTheSameLeaseAndAnotherWorkerNone) {
  SubmitRequest one = request();
  const Receipt first = receipt(one), again = receipt(one);
  EXPECT_TRUE(again.claimed);
  EXPECT_EQ(again.execution.lease_secret, first.execution.lease_secret);
  one.run_here->worker = "elsewhere";
  EXPECT_FALSE(receipt(one).claimed);
  EXPECT_FALSE(receipt(request()).claimed) << "under another id";
  EXPECT_TRUE(finish(again.execution));
}

TEST_P(RunHere, WhatItsDeadRunnerLeftIsAttemptTwo) {
  const Receipt dead = receipt(request());
  clock_.advance(31s);
  local_->clock_moved();
  clock_.advance(61s);
  const Receipt taken = receipt(request("second"));
  EXPECT_FALSE(taken.created);
  ASSERT_TRUE(taken.claimed);
  EXPECT_EQ(taken.execution.attempt, 2);
  EXPECT_FALSE(finish(dead.execution));
  EXPECT_TRUE(finish(taken.execution));
}

TEST_P(RunHere, AClaimIsGivenAlsoWhereDuplicatesAreErrors) {
  receipt(request());
  clock_.advance(31s);
  local_->clock_moved();
  clock_.advance(61s);
  SubmitRequest again = request("second");
  again.on_duplicate = OnDuplicate::error;
  EXPECT_TRUE(receipt(again).claimed);
  SubmitRequest third = request("third");
  third.on_duplicate = OnDuplicate::error;
  EXPECT_EQ(std::get<Refusal>(submit(engine(), third)).code, Refusal::Code::task_already_exists);
}

TEST_P(RunHere, ItIsForTasks) {
  SubmitRequest workflow = request();
  workflow.kind = Kind::workflow;
  EXPECT_EQ(std::get<Refusal>(submit(engine(), workflow)).pointer, "/run_here");
}

struct RunHereByHand : Engines, testing::Test {};

TEST_F(RunHereByHand, IsRepeatedAfterALostAnswer) {
  CuttingProxy proxy(server_->port());
  const auto through = connect_engine({.url = url_of(proxy.port()), .token = "", .name_space = kSpace});
  proxy.drop_answers(2);
  const auto receipt = std::get<Receipt>(submit(*through, request()));
  EXPECT_EQ(proxy.connections(), 3);
  EXPECT_TRUE(receipt.created);
  ASSERT_TRUE(receipt.claimed);
  EXPECT_EQ(receipt.execution.attempt, 1);
}

TEST_F(RunHereByHand, ATransactionOfTheCallersHasNoClaim) {
  const SubmitResult result = local_->submit_through(kSpace, request(), [](const Submission&, const QueuePolicies&) {
    ADD_FAILURE() << "nothing may be stored";
    return SubmitOutcome();
  });
  EXPECT_EQ(std::get<Refusal>(result).pointer, "/run_here");
}

TEST(RunHereSecret, IsMadeOfStoreIdAndWorker) {
  const Submission one = Task().id(test_id(1)).run_here("a", {}), other_id = Task().id(test_id(2)).run_here("a", {}),
                   other_worker = Task().id(test_id(1)).run_here("b", {});
  const LeaseSecret secret = run_here_secret("store", one);
  EXPECT_EQ(secret, run_here_secret("store", one));
  EXPECT_NE(secret, run_here_secret("another store", one));
  EXPECT_NE(secret, run_here_secret("store", other_id));
  EXPECT_NE(secret, run_here_secret("store", other_worker));
  EXPECT_EQ(run_here_secret("", one), run_here_secret("", one)) << "in memory, within this process";
}

}  // namespace
}  // namespace hapax
