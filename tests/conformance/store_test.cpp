#include "conformance/store_test.h"

namespace hapax {

StoreTest::StoreTest() : home_(GetParam().make()), store_(home_->open(clock_)) {}

std::shared_ptr<Store> StoreTest::second_handle() {
  if (!GetParam().shared) return store_;
  std::shared_ptr<Store> second = home_->open(clock_);
  second->set_policies(std::make_shared<QueuePolicies>(policies_));
  return second;
}

SubmitOutcome StoreTest::submit(const Submission& submission) { return store_->submit({&submission, 1}).at(0); }

Execution StoreTest::submitted(const Submission& submission) {
  const SubmitOutcome outcome = submit(submission);
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::created) << outcome;
  return outcome.execution;
}

ClaimRequest StoreTest::claim_request(std::vector<std::string> queues, std::int32_t limit) {
  ClaimRequest request;
  request.name_space = "default";
  request.queues = std::move(queues);
  request.limit = limit;
  request.worker = "worker-1";
  request.secret = test_secret(next_secret_++);
  return request;
}

ClaimOutcome StoreTest::claim(std::vector<std::string> queues, std::int32_t limit) {
  const ClaimRequest request = claim_request(std::move(queues), limit);
  return store_->claim({&request, 1}).at(0);
}

Execution StoreTest::claim_one(const std::string& queue) {
  const ClaimOutcome outcome = claim({queue}, 1);
  EXPECT_EQ(outcome.executions.size(), 1u);
  return outcome.executions.at(0);
}

std::vector<ExecutionId> StoreTest::claimed_of(std::vector<std::string> types, std::int32_t limit) {
  ClaimRequest request = claim_request({"work"}, limit);
  request.types = std::move(types);
  return ids_of(store_->claim({&request, 1}).at(0).executions);
}

std::vector<ExecutionId> StoreTest::claimed_ids(std::vector<std::string> queues, std::int32_t limit) {
  return ids_of(claim(std::move(queues), limit).executions);
}

ExtendOutcome StoreTest::extend(const LeaseToken& token, Duration lease) {
  const Extension extension{token, lease};
  return store_->extend({&extension, 1}).at(0);
}

FinishOutcome StoreTest::complete(const LeaseToken& token, std::optional<std::string> result) {
  const Report report{token, Report::Completed{std::move(result)}};
  return store_->finish({&report, 1}).at(0);
}

FinishOutcome StoreTest::fail(const LeaseToken& token, bool retryable) {
  const Report report{token, Report::Failed{{"CardDeclined", "no funds"}, retryable}};
  return store_->finish({&report, 1}).at(0);
}

ControlOutcome StoreTest::cancel(const ExecutionId& id) {
  return control(ControlRequest::Action::cancel, id, "request-" + std::to_string(next_request_++));
}

ControlOutcome StoreTest::retry(const ExecutionId& id) {
  return control(ControlRequest::Action::retry, id, "request-" + std::to_string(next_request_++));
}

ControlOutcome StoreTest::control(ControlRequest::Action action, const ExecutionId& id,
                                  const std::string& request_key) {
  ControlRequest request;
  request.name_space = "default";
  request.request_key = request_key;
  request.action = action;
  request.target = id;
  return store_->control({&request, 1}).at(0);
}

std::optional<Execution> StoreTest::find(const ExecutionId& id, const std::string& name_space) {
  return store_->find(name_space, id);
}

Status StoreTest::status_of(const ExecutionId& id) { return find(id).value().status; }

void StoreTest::set_policy(const std::string& queue, const QueuePolicy& policy) {
  policies_.set("default", queue, policy);
  store_->set_policies(std::make_shared<QueuePolicies>(policies_));
}

void StoreTest::set_retention(const std::string& queue, Duration retention) {
  QueuePolicy policy = policies_.of("default", queue);
  policy.retention = retention;
  set_policy(queue, policy);
}

Execution StoreTest::owner_in(Status status, Task task) {
  if (status == Status::suspended) task.kind(Kind::workflow).status(Status::suspended);
  if (status == Status::timed_out) task.deadline(1ms);
  const Execution owner = submitted(task);
  switch (status) {
    case Status::pending:
    case Status::suspended: break;
    case Status::running: claim_one(owner.queue); break;
    case Status::completed: complete(token_of(claim_one(owner.queue))); break;
    case Status::failed: fail(token_of(claim_one(owner.queue)), false); break;
    case Status::cancelled: cancel(owner.id); break;
    case Status::timed_out:
      clock_.advance(1ms);
      store_->sweep(100);
      break;
  }
  EXPECT_EQ(status_of(owner.id), status);
  return find(owner.id).value();
}

std::vector<ExecutionId> ids_of(const std::vector<Execution>& executions) {
  std::vector<ExecutionId> ids;
  for (const Execution& execution : executions) ids.push_back(execution.id);
  return ids;
}

std::vector<ExecutionId> ids_of(const std::vector<Changed>& closed) {
  std::vector<ExecutionId> ids;
  for (const Changed& one : closed) ids.push_back(one.id);
  return ids;
}

}  // namespace hapax
