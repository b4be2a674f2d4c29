// A store that passes every verb on to another one: the base of those that stand in front of a store and change a few.
#pragma once

#include <memory>
#include <utility>

#include "store/store.h"

namespace hapax {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  Time now() override { return store_->now(); }
  void migrate() override { store_->migrate(); }
  std::string identity() override { return store_->identity(); }
  bool is_replaced() override { return store_->is_replaced(); }
  void reopen() override { store_->reopen(); }
  void interrupt() override { store_->interrupt(); }
  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    store_->set_policies(std::move(policies));
  }
  Parallelism parallelism() const override { return store_->parallelism(); }
  bool hands_out() const override { return store_->hands_out(); }
  using Store::submit, Store::finish, Store::commit_turns;
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    return store_->submit(submissions, waiters);
  }
  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override { return store_->claim(requests); }
  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    return store_->extend(extensions);
  }
  void announce(std::span<const WorkerInfo> workers) override { store_->announce(workers); }
  std::vector<FinishOutcome> finish(std::span<const Report> reports, WaitingClaims& waiters) override {
    return store_->finish(reports, waiters);
  }
  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, WaitingClaims& waiters) override {
    return store_->commit_turns(turns, waiters);
  }
  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    return store_->control(requests);
  }
  SweepOutcome sweep(std::int32_t limit) override { return store_->sweep(limit); }
  PurgeOutcome purge(std::int32_t limit) override { return store_->purge(limit); }
  std::int64_t purge_requests(std::int32_t limit) override { return store_->purge_requests(limit); }
  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    return store_->find(name_space, id);
  }
  std::vector<std::optional<Execution>> find_all(const std::string& name_space,
                                                 std::span<const ExecutionId> ids) override {
    return store_->find_all(name_space, ids);
  }
  Inspection inspect(const std::string& from, std::int32_t limit) override { return store_->inspect(from, limit); }
  Page list(const ListFilter& filter) override { return store_->list(filter); }
  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    return store_->count(name_space);
  }
  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    return store_->history(run, after, limit);
  }
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override {
    return store_->why(name_space, id);
  }
  std::vector<WorkerInfo> workers(const std::string& name_space) override { return store_->workers(name_space); }
  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override { return store_->find_identity(hash); }
  std::optional<FoundIdentity> find_identity_in(const NamedScope& scope, const IdentityHash& hash) override {
    return store_->find_identity_in(scope, hash);
  }
  std::vector<std::optional<ExecutionId>> owners(std::span<const OwnerQuery> queries) override {
    return store_->owners(queries);
  }
  std::vector<SettingDocument> settings() override { return store_->settings(); }
  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    return store_->release_identity(name_space, hash);
  }
  void put_setting(const SettingDocument& setting) override { store_->put_setting(setting); }
  ActivityRows& activities() override { return store_->activities(); }
  void check() override { store_->check(); }
  void watch(std::function<void()> on_change) override { store_->watch(std::move(on_change)); }

 protected:
  const std::shared_ptr<Store> store_;
};

}  // namespace hapax
