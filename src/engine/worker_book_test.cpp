#include "engine/worker_book.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/failure.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"
#include "support/manual_clock.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

// Keeps every word, and can refuse them.
class HeardStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void announce(std::span<const WorkerInfo> workers) override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (refuses_) throw Failure(Failure::Code::unavailable, "down");
    heard_.insert(heard_.end(), workers.begin(), workers.end());
  }
  std::vector<WorkerInfo> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  void refuse(bool refuses) {
    const std::lock_guard lock(mutex_);
    refuses_ = refuses;
  }

 private:
  std::mutex mutex_;
  std::vector<WorkerInfo> heard_;
  int calls_ = 0;
  bool refuses_ = false;
};

class WorkerBookTest : public ::testing::Test {
 protected:
  ~WorkerBookTest() override { timer_.stop(); }

  static ClaimCall call(const std::string& worker = "w", Duration wait = 0ms) {
    return {.name_space = "default", .queues = {"work"}, .types = {"charge"}, .worker = worker, .wait = wait};
  }
  void claim(const ClaimCall& call) {
    book_.note(call, [](const Answer<std::vector<Claimed>>&) {});
  }

  // What is due is told; until the store has heard so many words.
  std::vector<WorkerInfo> await_heard(std::size_t count) {
    book_.clock_moved();
    while (store_.heard().size() < count) std::this_thread::yield();
    return store_.heard();
  }
  void advance(Duration by) {
    clock_.advance(by);
    book_.clock_moved();
  }

  ManualClock clock_;
  HeardStore store_{open_memory_store(clock_)};
  Timer timer_;
  WorkerBook book_{store_, timer_};
};

TEST_F(WorkerBookTest, ANewWorkerIsToldSoon) {
  const auto begin = std::chrono::steady_clock::now();
  claim(call());
  while (store_.heard().empty()) std::this_thread::yield();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, WorkerBook::kFirstAfter);
}

TEST_F(WorkerBookTest, WhatItSaysOfItselfIsTold) {
  ClaimCall first = call();
  first.origin = {"c++", "1.0", "node", 7};
  claim(first);
  const WorkerInfo expected{.name_space = "default",
                            .name = "w",
                            .origin = {"c++", "1.0", "node", 7},
                            .queues = {"work"},
                            .types = {"charge"},
                            .last_seen_at = clock_.now()};
  EXPECT_EQ(await_heard(1), std::vector<WorkerInfo>{expected});
}

TEST_F(WorkerBookTest, AWorkerThatClaimsAgainAndAgainIsToldEveryTwentySeconds) {
  claim(call());
  await_heard(1);
  for (int i = 0; i < 19; ++i) {
    clock_.advance(1s);
    claim(call());
    book_.clock_moved();
  }
  EXPECT_EQ(store_.heard().size(), 1U);
  clock_.advance(1s);
  claim(call());
  book_.clock_moved();
  const auto heard = await_heard(2);
  EXPECT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard.back().last_seen_at, clock_.now());
}

TEST_F(WorkerBookTest, OneThatIsGoneIsToldNoMore) {
  claim(call());
  await_heard(1);
  for (int i = 0; i < 10; ++i) advance(20s);
  EXPECT_EQ(store_.heard().size(), 1U);
}

TEST_F(WorkerBookTest, ItsLastClaimIsTold) {
  claim(call());
  await_heard(1);
  clock_.advance(5s);
  claim(call());
  const Time last = clock_.now();
  advance(15s);
  EXPECT_EQ(await_heard(2).back().last_seen_at, last);
}

TEST_F(WorkerBookTest, ACallThatWaitsCountsAsAClaimAllThatTime) {
  const auto reply = book_.note(call("w", 60s), [](const Answer<std::vector<Claimed>>&) {});
  await_heard(1);
  advance(50s);
  EXPECT_EQ(await_heard(2).back().last_seen_at, clock_.now());
  reply(std::vector<Claimed>());
  const Time last = clock_.now();
  advance(30s);
  advance(30s);
  EXPECT_EQ(store_.heard().back().last_seen_at, last);
}

TEST_F(WorkerBookTest, CallsOfSeveralKindsAreOneWorker) {
  claim(call());
  await_heard(1);
  ClaimCall turns = call();
  turns.tasks = false;
  turns.workflows = true;
  turns.queues = {"flows"};
  turns.types = {"order"};
  claim(turns);
  advance(1s);
  const WorkerInfo both = await_heard(2).back();
  EXPECT_EQ(both.queues, (std::vector<std::string>{"flows", "work"}));
  EXPECT_EQ(both.types, (std::vector<std::string>{"charge", "order"}));
  EXPECT_TRUE(both.tasks && both.workflows);
}

TEST_F(WorkerBookTest, OneThatClaimsAnyTypeClaimsAny) {
  claim(call());
  ClaimCall any = call();
  any.types = {};
  claim(any);
  EXPECT_TRUE(await_heard(1).back().types.empty());
}

TEST_F(WorkerBookTest, WhatItDoesNotClaimAnyMoreIsForgottenAfterAMinute) {
  ClaimCall other = call();
  other.queues = {"other"};
  claim(other);
  claim(call());
  for (int i = 0; i < 7; ++i) {
    advance(10s);
    claim(call());
  }
  advance(1s);
  EXPECT_EQ(store_.heard().back().queues, std::vector<std::string>{"work"});
}

TEST_F(WorkerBookTest, AStoreThatFailsIsToldAgainLater) {
  store_.refuse(true);
  claim(call());
  book_.clock_moved();
  EXPECT_EQ(store_.calls(), 1);
  advance(1s);
  EXPECT_EQ(store_.calls(), 1);
  store_.refuse(false);
  advance(19s);
  EXPECT_EQ(await_heard(1).size(), 1U);
}

}  // namespace
}  // namespace hapax
