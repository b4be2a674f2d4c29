// What every test of the suite starts from: a fresh store on a clock that stands still, and its verbs for single items.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "conformance/stores.h"
#include "core/policy.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {

using namespace std::chrono_literals;

class StoreTest : public testing::TestWithParam<StoreKind> {
 protected:
  StoreTest();

  Time now() const { return clock_.now(); }
  Store& store() { return *store_; }

  // Another handle on the same data, or the same one where the store is not shared.
  std::shared_ptr<Store> second_handle();

  SubmitOutcome submit(const Submission& submission);
  Execution submitted(const Submission& submission);  // asserts that it was created

  ClaimRequest claim_request(std::vector<std::string> queues, std::int32_t limit);
  ClaimOutcome claim(std::vector<std::string> queues = {"work"}, std::int32_t limit = 100);
  std::vector<ExecutionId> claimed_of(std::vector<std::string> types, std::int32_t limit = 100);
  Execution claim_one(const std::string& queue = "work");  // asserts that there is one
  std::vector<ExecutionId> claimed_ids(std::vector<std::string> queues = {"work"}, std::int32_t limit = 100);

  ExtendOutcome extend(const LeaseToken& token, Duration lease = 60s);
  FinishOutcome complete(const LeaseToken& token, std::optional<std::string> result = "1");
  FinishOutcome fail(const LeaseToken& token, bool retryable = true);

  ControlOutcome cancel(const ExecutionId& id);  // each under a request key of its own
  ControlOutcome retry(const ExecutionId& id);
  ControlOutcome control(ControlRequest::Action action, const ExecutionId& id, const std::string& request_key);

  std::optional<Execution> find(const ExecutionId& id, const std::string& name_space = "default");
  Status status_of(const ExecutionId& id);

  bool change_payloads(const std::string& from, const std::string& to) { return home_->change_payloads(from, to); }

  // Changes the rules of one queue of the namespace "default"; those of the others stay.
  void set_policy(const std::string& queue, const QueuePolicy& policy);
  void set_retention(const std::string& queue, Duration retention);

  // Submits the task and brings it into that status.
  Execution owner_in(Status status, Task task);

  ManualClock clock_;

 private:
  std::unique_ptr<StoreHome> home_;
  std::shared_ptr<Store> store_;
  QueuePolicies policies_;
  int next_request_ = 0;
  std::uint64_t next_secret_ = 1;
};

inline std::string store_name(const testing::TestParamInfo<StoreKind>& info) { return info.param.name; }

std::vector<ExecutionId> ids_of(const std::vector<Execution>& executions);
std::vector<ExecutionId> ids_of(const std::vector<Changed>& closed);

#define HAPAX_FOR_ALL_STORES(suite) INSTANTIATE_TEST_SUITE_P(Stores, suite, testing::ValuesIn(all_stores()), store_name)

}  // namespace hapax
