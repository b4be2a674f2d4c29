#include "store/memory/memory_store.h"

#include <mutex>

#include "store/memory/activity_tables.h"
#include "store/memory/tables.h"
#include "store/memory/verbs.h"
#include "store/rules/answer_budget.h"
#include "store/rules/hand_out.h"
#include "store/rules/returned_permits.h"

namespace hapax {
namespace {

using memory::Tables;

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const Clock& clock) : clock_(clock), activities_(clock) {}

  Time now() override { return clock_.now(); }
  void migrate() override {}

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    const std::lock_guard lock(mutex_);
    tables_.policies = std::move(policies);
  }

  bool hands_out() const override { return true; }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    AnswerBudget budget;
    const auto submit_one = [&](Tables& tables, const Submission& submission, Time now) {
      return budget.bound(submission, memory::submit(tables, submission, now));
    };
    return for_each<SubmitOutcome>(submissions, submit_one, &waiters);
  }
  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    return for_each<ClaimOutcome>(requests, memory::claim);
  }
  void announce(std::span<const WorkerInfo> workers) override {
    const std::lock_guard lock(mutex_);
    for (const WorkerInfo& worker : workers) memory::announce(tables_, worker);
  }
  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    auto outcomes = for_each<ExtendOutcome>(extensions, memory::extend);
    const std::lock_guard lock(mutex_);
    for (const ReturnedPermits& permits : returned_permits(extensions, outcomes, *tables_.policies)) {
      const QueuePolicy& policy = tables_.policies->of(permits.name_space, permits.queue);
      RateState& rate = tables_.rates[{permits.name_space, permits.queue, Kind::task}];
      return_permits(*policy.rate_limit, rate, clock_.now(), permits.count);
    }
    return outcomes;
  }
  std::vector<FinishOutcome> finish(std::span<const Report> reports, WaitingClaims& waiters) override {
    return for_each<FinishOutcome>(reports, memory::finish, &waiters);
  }
  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    return for_each<ControlOutcome>(requests, memory::control);
  }

  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, WaitingClaims& waiters) override {
    return for_each<TurnOutcome>(turns, memory::commit_turn, &waiters);
  }
  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    const std::lock_guard lock(mutex_);
    PageBudget budget;
    return memory::events_after(tables_, run, after, limit, budget);
  }

  SweepOutcome sweep(std::int32_t limit) override {
    const std::lock_guard lock(mutex_);
    return memory::sweep(tables_, limit, clock_.now());
  }
  PurgeOutcome purge(std::int32_t limit) override {
    const std::lock_guard lock(mutex_);
    return memory::purge(tables_, limit, clock_.now());
  }
  std::int64_t purge_requests(std::int32_t limit) override {
    const std::lock_guard lock(mutex_);
    return memory::purge_requests(tables_, limit, clock_.now());
  }

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    const std::lock_guard lock(mutex_);
    const Execution* execution = tables_.find(name_space, id);
    return execution ? std::optional(*execution) : std::nullopt;
  }

  Page list(const ListFilter& filter) override {
    const std::lock_guard lock(mutex_);
    return memory::list(tables_, filter);
  }
  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    const std::lock_guard lock(mutex_);
    return memory::count(tables_, name_space);
  }

  std::vector<WorkerInfo> workers(const std::string& name_space) override {
    const std::lock_guard lock(mutex_);
    return memory::workers(tables_, name_space, clock_.now());
  }
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override {
    const std::lock_guard lock(mutex_);
    return memory::why(tables_, name_space, id, clock_.now());
  }

  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override {
    const std::lock_guard lock(mutex_);
    const auto entry = tables_.ledger.find(hash);
    if (entry == tables_.ledger.end()) return std::nullopt;
    FoundIdentity found;
    found.entry = entry->second;
    if (const Execution* owner = tables_.owner_of(found.entry)) found.owner = *owner;
    found.live = tables_.is_live(found.entry, clock_.now());
    found.expires_at = tables_.dies_at(found.entry);
    return found;
  }

  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    const std::lock_guard lock(mutex_);
    const auto entry = tables_.ledger.find(hash);
    if (entry == tables_.ledger.end() || entry->second.name_space != name_space) return false;
    tables_.ledger.erase(entry);
    return true;
  }

  std::vector<SettingDocument> settings() override {
    const std::lock_guard lock(mutex_);
    std::vector<SettingDocument> all;
    for (const auto& [key, document] : tables_.settings) {
      const auto& [name_space, kind, name] = key;
      all.push_back({name_space, kind, name, document});
    }
    return all;
  }

  void put_setting(const SettingDocument& setting) override {
    const std::lock_guard lock(mutex_);
    tables_.settings[{setting.name_space, setting.kind, setting.name}] = setting.document;
  }

  ActivityRows& activities() override { return activities_; }

  void check() override {}

  // No other process can change the data: there is never a change to report.
  void watch(std::function<void()>) override {}

 private:
  template <class Outcome, class Item, class Verb>
  std::vector<Outcome> for_each(std::span<const Item> items, Verb verb, WaitingClaims* waiters = nullptr) {
    const std::lock_guard lock(mutex_);
    const Time now = clock_.now();
    std::vector<Outcome> outcomes;
    outcomes.reserve(items.size());
    for (const Item& item : items) outcomes.push_back(verb(tables_, item, now));
    if constexpr (requires(Outcome outcome) { outcome.effects; }) {
      if (waiters && waiters->may_be_any()) {
        forget_handed(outcomes, memory::hand_out(tables_, *waiters, made_ready(items, outcomes), now));
      }
    }
    return outcomes;
  }

  const Clock& clock_;
  std::mutex mutex_;
  Tables tables_;
  memory::ActivityTables activities_;
};

}  // namespace

std::unique_ptr<Store> open_memory_store(const Clock& clock) { return std::make_unique<MemoryStore>(clock); }

}  // namespace hapax
