// The store in a real bucket, over a network that answers 500, slows down, breaks connections and loses answers: one
// key, many submitters, one task. HAPAX_SEED=n repeats a failure; HAPAX_ROUNDS=n sets the number of rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstdlib>
#include <set>
#include <thread>

#include "store/s3/client/s3_objects.h"
#include "store/s3/s3_store.h"
#include "support/fault_proxy.h"
#include "support/s3_server.h"
#include "support/task.h"

namespace hapax {
namespace {

using Fault = FaultProxy::Fault;

constexpr int kSubmitters = 32, kHandles = 4;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

// Sends until the outcome is known, as the engine does.
SubmitOutcome submit_until_known(Store& store, const Submission& submission) {
  for (int tries = 0;; ++tries) {
    try {
      return store.submit(std::span(&submission, 1)).front();
    } catch (const Failure& failure) {
      if (!failure.safe_to_retry() || tries > 100) throw;
    }
  }
}

class S3Network : public testing::Test {
 protected:
  S3Network() {
    S3ObjectsOptions client;
    client.first_pause = Duration(2);
    client.longest_pause = Duration(100);
    client.wire.timeout = Duration(2'000);
    const S3Address address = S3Server::shared().fresh_address(proxy_.port());
    for (int i = 0; i < kHandles; ++i) {
      counts_.push_back(std::make_shared<RequestCounts>());
      client.wire.counts = counts_.back();
      stores_.push_back(open_s3_store(std::make_shared<S3Objects>(address, client), {.pulse = Duration(0)}));
      stores_.back()->set_policies(std::make_shared<QueuePolicies>());
    }
  }

  // All submit the same key at the same moment, round by round; then each round is checked.
  void race(int rounds) {
    std::vector<std::vector<SubmitOutcome>> outcomes(static_cast<std::size_t>(rounds));
    for (auto& round : outcomes) round.resize(kSubmitters);
    std::barrier gate(kSubmitters);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kSubmitters; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t round = 0; round < outcomes.size(); ++round) {
          const Submission submission = Task("charge").key("order-" + std::to_string(round));
          gate.arrive_and_wait();
          outcomes[round][t] = submit_until_known(*stores_[t % kHandles], submission);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t round = 0; round < outcomes.size(); ++round) judge(round, outcomes[round]);
  }

  void judge(std::size_t round, const std::vector<SubmitOutcome>& outcomes) {
    std::set<ExecutionId> ids;
    int created = 0;
    for (const SubmitOutcome& outcome : outcomes) {
      ids.insert(outcome.execution.id);
      created += outcome.kind == SubmitOutcome::Kind::created ? 1 : 0;
    }
    EXPECT_EQ(ids.size(), 1u) << "round " << round;
    EXPECT_EQ(created, 1) << "round " << round;
  }

  // Every task in the bucket.
  std::size_t tasks() {
    ListFilter filter;
    filter.name_space = "default";
    filter.limit = 100'000;
    return stores_.front()->list(filter).size();
  }

  FaultProxy proxy_{S3Server::shared().port()};
  std::vector<std::shared_ptr<RequestCounts>> counts_;
  std::vector<std::unique_ptr<Store>> stores_;
};

TEST_F(S3Network, ManySubmittersOfOneKeyMakeOneTaskWhateverTheNetworkDoes) {
  const int rounds = static_cast<int>(number_from_environment("HAPAX_ROUNDS", 40));
  const std::uint64_t seed = number_from_environment("HAPAX_SEED", 1);
  proxy_.follow([faults = FaultProxy::random(seed, 8), held = 0](const FaultProxy::Request& request) mutable {
    // Sometimes the answer never arrives, and the client times out.
    if (request.number % 1'000 == 0 && ++held < 20) return Fault::hold_answer;
    return faults(request);
  });

  race(rounds);

  const std::int64_t requests = proxy_.requests();
  std::int64_t failed = 0;
  for (const auto& counts : counts_) failed += counts->failed;
  proxy_.follow({});
  EXPECT_EQ(tasks(), static_cast<std::size_t>(rounds)) << "HAPAX_SEED=" << seed;
  EXPECT_GT(failed, requests / 20) << "too little went wrong to mean anything";
  std::cout << requests << " requests, " << failed << " of them failed\n";
}

}  // namespace
}  // namespace hapax
