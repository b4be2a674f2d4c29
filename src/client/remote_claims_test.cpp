// Claims whose answer is lost, and claims that are cancelled as they are answered.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "client/remote_engine.h"
#include "engine/local_engine.h"
#include "http/server.h"
#include "store/memory/memory_store.h"
#include "support/cutting_proxy.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const SystemClock kClock;
const std::string kSpace = "default";

class RemoteClaims : public testing::Test {
 protected:
  ExecutionId create() {
    SubmitRequest request;
    request.type = "a";
    std::vector<SubmitRequest> requests;
    requests.push_back(std::move(request));
    auto results = await<std::vector<SubmitResult>>(
        [&](auto reply) { local->submit(kSpace, std::move(requests), std::move(reply)); });
    return std::get<Receipt>(results.at(0)).execution.id;
  }
  static ClaimCall call_for(Duration wait, std::string claim_id = {}) {
    ClaimCall call;
    call.name_space = kSpace;
    call.queues = {"default"};
    call.worker = "w";
    call.wait = wait;
    call.claim_id = std::move(claim_id);
    return call;
  }
  std::vector<Claimed> claim(std::string claim_id = {}) {
    return await<std::vector<Claimed>>(
        [&](auto reply) { remote->claim(call_for(0s, std::move(claim_id)), std::move(reply)); });
  }
  bool complete(const Claimed& claimed) {
    const Execution& task = claimed.execution;
    std::vector<Report> reports{{{task.id, task.attempt, *task.lease_secret}, Report::Completed{}}};
    return await<std::vector<FinishOutcome>>([&](auto reply) { remote->finish(std::move(reports), std::move(reply)); })
        .at(0)
        .accepted;
  }
  Status status_of(const ExecutionId& id) { return local->find(kSpace, id)->status; }

  std::unique_ptr<LocalEngine> local = start_engine(open_memory_store(kClock), {});
  std::unique_ptr<Server> server = start_server(*local, [] {
    ServerOptions options;
    options.port = 0;
    return options;
  }());
  CuttingProxy proxy{server->port()};
  std::unique_ptr<Engine> remote =
      connect_engine({.url = "http://127.0.0.1:" + std::to_string(proxy.port()), .token = "", .name_space = kSpace});
};

TEST_F(RemoteClaims, AfterALostAnswerAClaimGetsWhatItWasHanded) {
  for (const int lost : {1, 3}) {
    const ExecutionId id = create(), other = create();
    proxy.drop_answers(lost);
    const auto claimed = claim();
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_EQ(claimed[0].execution.id, id);
    EXPECT_EQ(claimed[0].execution.attempt, 1);
    EXPECT_EQ(status_of(other), Status::pending);
    EXPECT_TRUE(complete(claimed[0]));
    EXPECT_TRUE(complete(claim().at(0)));
  }
}

TEST_F(RemoteClaims, TheNextOneGetsWhatOneWasHandedThatFailed) {
  const ExecutionId id = create();
  proxy.drop_answers(1000);
  try {
    claim();
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::outcome_unknown);
  }
  EXPECT_EQ(status_of(id), Status::running);
  proxy.drop_answers(0);
  const auto claimed = claim();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].execution.id, id);
  EXPECT_TRUE(complete(claimed[0]));
}

TEST_F(RemoteClaims, OneThatIsCancelledAsItIsHandedSomethingGetsIt) {
  proxy.hold_answers(true);
  std::promise<std::vector<Claimed>> answered;
  const auto waiting = remote->claim(
      call_for(60s), [&](Answer<std::vector<Claimed>> answer) { answered.set_value(std::move(answer).get()); });
  while (local->counters().waiting_claims != 1) std::this_thread::yield();
  proxy.hold_answers(false);
  const ExecutionId id = create();
  while (status_of(id) != Status::running) std::this_thread::yield();
  waiting->cancel();
  const auto claimed = answered.get_future().get();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].execution.id, id);
  EXPECT_TRUE(complete(claimed[0]));
}

TEST_F(RemoteClaims, MayBeSaidAgainUnderAnIdOfTheCallers) {
  const ExecutionId id = create();
  create();
  EXPECT_EQ(claim("c").at(0).execution.id, id);
  EXPECT_EQ(claim("c").at(0).execution.id, id);
  EXPECT_NE(claim("d").at(0).execution.id, id);
}

}  // namespace
}  // namespace hapax
