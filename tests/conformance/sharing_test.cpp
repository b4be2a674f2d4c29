#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "conformance/store_test.h"

namespace hapax {
namespace {

using Kind = SubmitOutcome::Kind;

// Runs the work on that many threads at once.
template <class Work>
void on_threads(int count, Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

class Sharing : public StoreTest {
 protected:
  // One outcome per thread; every second thread has a handle of its own.
  std::vector<SubmitOutcome> race(const std::vector<Submission>& submissions) {
    std::vector<std::shared_ptr<Store>> handles;
    for (std::size_t i = 0; i < submissions.size(); ++i) {
      handles.push_back(i % 2 == 0 ? std::shared_ptr<Store>(&store(), [](Store*) {}) : second_handle());
    }
    std::vector<SubmitOutcome> outcomes(submissions.size());
    on_threads(static_cast<int>(submissions.size()), [&](int i) {
      const auto n = static_cast<std::size_t>(i);
      outcomes[n] = handles[n]->submit({&submissions[n], 1}).at(0);
    });
    return outcomes;
  }

  static std::int64_t count(const std::vector<SubmitOutcome>& outcomes, Kind kind) {
    return std::count_if(outcomes.begin(), outcomes.end(), [&](const auto& outcome) { return outcome.kind == kind; });
  }
};
HAPAX_FOR_ALL_STORES(Sharing);

TEST_P(Sharing, OfEightConcurrentSubmissionsOfOneKeyOneCreates) {
  for (int round = 0; round < 10; ++round) {
    std::vector<Submission> submissions;
    for (int i = 0; i < 8; ++i) submissions.push_back(Task().key("k" + std::to_string(round)));
    const auto outcomes = race(submissions);
    EXPECT_EQ(count(outcomes, Kind::created), 1);
    EXPECT_EQ(count(outcomes, Kind::duplicate), 7);
    std::set<ExecutionId> ids;
    for (const SubmitOutcome& outcome : outcomes) ids.insert(outcome.execution.id);
    EXPECT_EQ(ids.size(), 1u);
  }
  EXPECT_EQ(store().list({.name_space = "default"}).size(), 10u);
}

TEST_P(Sharing, OfEightConcurrentInputsUnderOneKeyOneCreatesAndTheRestConflict) {
  std::vector<Submission> submissions;
  for (int i = 0; i < 8; ++i) submissions.push_back(Task().key("k").input(std::to_string(i)));
  const auto outcomes = race(submissions);
  EXPECT_EQ(count(outcomes, Kind::created), 1);
  EXPECT_EQ(count(outcomes, Kind::conflict), 7);
}

TEST_P(Sharing, OfEightConcurrentTakeoversOfADeadEntryOneCreates) {
  owner_in(Status::completed, Task().key("k").ttl(1h));
  clock_.advance(1h);
  std::vector<Submission> submissions;
  for (int i = 0; i < 8; ++i) submissions.push_back(Task().key("k"));
  EXPECT_EQ(count(race(submissions), Kind::created), 1);
}

TEST_P(Sharing, ConcurrentClaimsNeverHandOutATaskTwice) {
  constexpr int kTasks = 200;
  for (int i = 0; i < kTasks; ++i) submitted(Task());
  std::vector<ClaimRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(claim_request({"work"}, 7));
  std::mutex mutex;
  std::vector<ExecutionId> claimed;
  on_threads(8, [&](int i) {
    for (;;) {
      const auto outcome = store().claim({&requests[static_cast<std::size_t>(i)], 1}).at(0);
      if (outcome.executions.empty()) return;
      const std::lock_guard lock(mutex);
      for (const Execution& execution : outcome.executions) claimed.push_back(execution.id);
    }
  });
  EXPECT_EQ(claimed.size(), std::size_t{kTasks});
  EXPECT_EQ(std::set(claimed.begin(), claimed.end()).size(), std::size_t{kTasks});
}

TEST_P(Sharing, ConcurrentClaimsKeepToMaxRunning) {
  set_policy("work", {.max_running = 5});
  for (int i = 0; i < 40; ++i) submitted(Task());
  std::vector<ClaimRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(claim_request({"work"}, 3));
  on_threads(8, [&](int i) { store().claim({&requests[static_cast<std::size_t>(i)], 1}); });
  EXPECT_EQ(store().count().at(0).running, 5);
}

TEST_P(Sharing, ConcurrentReportsUnderOneTokenCountOnce) {
  const auto id = submitted(Task().retry({0ms, 1, 0ms})).id;
  const Report report{token_of(claim_one()), Report::Failed{{"E", "m"}, true}};
  on_threads(8, [&](int) { EXPECT_TRUE(store().finish({&report, 1}).at(0).accepted); });
  EXPECT_EQ(find(id)->failed_attempts.size(), 1u);
}

TEST_P(Sharing, ConcurrentControlOperationsUnderOneKeyRunOnce) {
  const auto id = submitted(Task()).id;
  const ControlRequest request{"default", "r", ControlRequest::Action::cancel, id};
  std::vector<ControlOutcome> outcomes(8);
  on_threads(8, [&](int i) { outcomes[static_cast<std::size_t>(i)] = store().control({&request, 1}).at(0); });
  const auto fresh = std::count_if(outcomes.begin(), outcomes.end(), [](const auto& o) { return !o.replayed; });
  EXPECT_EQ(fresh, 1);
}

TEST_P(Sharing, WhatOneHandleDoesTheOtherSees) {
  const auto second = second_handle();
  const Execution task = submitted(Task().key("k"));
  EXPECT_EQ(second->find("default", task.id), task);
  const ClaimRequest request = claim_request({"work"}, 1);
  const Execution claimed = second->claim({&request, 1}).at(0).executions.at(0);
  EXPECT_EQ(complete(token_of(claimed)).status, Status::completed);
  EXPECT_EQ(second->find("default", task.id)->status, Status::completed);
}

TEST_P(Sharing, RateLimitHoldsOverAllHandles) {
  set_policy("work", {.rate_limit = Rate{2, 1h, 2}});
  const auto second = second_handle();
  for (int i = 0; i < 5; ++i) submitted(Task());
  EXPECT_EQ(claimed_ids({"work"}, 1).size(), 1u);
  const ClaimRequest request = claim_request({"work"}, 5);
  EXPECT_EQ(second->claim({&request, 1}).at(0).executions.size(), 1u);
  EXPECT_EQ(claimed_ids().size(), 0u);
}

// Listens on one handle while another one changes the data.
class Watch : public StoreTest {
 protected:
  void listen(Store& store) {
    store.watch([this] {
      const std::lock_guard lock(mutex_);
      ++calls_;
      called_.notify_all();
    });
  }

  bool is_called() {
    std::unique_lock lock(mutex_);
    return called_.wait_for(lock, 30s, [&] { return calls_ > 0; });
  }

  std::mutex mutex_;
  std::condition_variable called_;
  int calls_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Stores, Watch, testing::ValuesIn(shared_stores()), store_name);

TEST_P(Watch, TellsOfAChangeThroughAnotherHandle) {
  const auto second = second_handle();
  listen(*second);
  submitted(Task());
  EXPECT_TRUE(is_called());
  second->watch({});
}

TEST_P(Watch, TellsOfAnActivityThatAnotherHandleDefined) {
  const auto second = second_handle();
  listen(*second);
  const ActivityChange change{.row = {.name_space = "default", .id = "a", .document = "{}", .next_due = now()}};
  EXPECT_TRUE(store().activities().change({&change, 1}).at(0));
  EXPECT_TRUE(is_called());
  second->watch({});
}

TEST_P(Watch, HandleCanBeDroppedWhileListening) {
  const auto second = second_handle();
  listen(*second);
}

}  // namespace
}  // namespace hapax
