#include "store/postgres/postgres_store.h"

#include <algorithm>

#include "store/postgres/connection/interrupt.h"
#include "store/postgres/connection/url.h"
#include "store/postgres/opened.h"
#include "store/postgres/tables/schema.h"
#include "store/postgres/watch.h"

namespace hapax {
namespace {

using namespace postgres;

ConnectionOptions connection_options(const PostgresOptions& options, const Interrupt& interrupt) {
  Url url = parse_url(options.url);
  ConnectionOptions connection;
  connection.hosts = std::move(url.hosts);
  connection.connect_timeout = url.connect_timeout;
  connection.schema = std::move(url.schema);
  connection.pooled = url.pooled;
  connection.interrupt_fd = interrupt.fd();
  return connection;
}

class PostgresStore final : public Store {
 public:
  PostgresStore(const PostgresOptions& options, const Clock* clock)
      : options_(connection_options(options, interrupt_)),
        fast_(parse_url(options.url).fast),
        connections_(options.connections),
        timeout_(options.timeout),
        clock_(clock),
        handle_(new_handle_name()),
        activities_([this] { return call(); }),
        notifies_(options.notify),
        notifier_(options_, handle_) {
    opened_ = open(options.create, options.migrate);
    settings();  // and the server's time is known
  }

  Time now() override { return opened()->runner.now(); }

  void migrate() override { prepare(true, true); }

  std::string identity() override { return opened()->runner.identity(); }
  bool is_replaced() override { return opened()->runner.is_replaced(); }

  void reopen() override {
    const CallDeadline deadline(timeout_);
    const std::lock_guard alone(reopening_);
    if (!is_replaced()) return;
    std::shared_ptr<Opened> fresh = open(false, false);
    postgres::settings(fresh->runner);  // the server's time is known
    const std::lock_guard lock(mutex_);
    if (policies_) fresh->runner.set_policies(policies_);
    opened_ = std::move(fresh);
  }

  void interrupt() override {
    interrupt_.trigger();
    opened()->runner.pool().close();
  }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    const std::lock_guard lock(mutex_);
    policies_ = policies;
    opened_->runner.set_policies(std::move(policies));
    opened_->claim.limits_changed();
    opened_->claim.forget_positions();
  }

  // While one waits for the disk, another computes; and their waits are one. But each costs as much as some ten items.
  // A large claim is read here while the server is at the next one.
  Parallelism parallelism() const override { return {.submit = 2, .claim = 2, .commit_turns = 2, .worth_items = 8}; }

  bool hands_out() const override { return true; }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    const Call call = this->call();
    auto outcomes = call->submit(submissions, waiters);
    for (const Submission& submission : submissions) {
      if (submission.run_at) call->claim.forget_positions();
    }
    tell_if(std::any_of(outcomes.begin(), outcomes.end(),
                        [](const SubmitOutcome& outcome) { return outcome.kind == SubmitOutcome::Kind::created; }));
    return outcomes;
  }

  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    const Call call = this->call();
    auto outcomes = call->claim(requests);
    tell_if(call->claim.take_left_some());
    return outcomes;
  }

  void announce(std::span<const WorkerInfo> workers) override { postgres::announce(call().runner(), workers); }
  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    const Call call = this->call();
    auto outcomes = postgres::extend(call.runner(), extensions);
    tell_if_changed_early(call, std::any_of(extensions.begin(), extensions.end(),
                                            [](const Extension& extension) { return extension.lease <= Duration(0); }));
    return outcomes;
  }

  std::vector<FinishOutcome> finish(std::span<const Report> reports, WaitingClaims& waiters) override {
    const Call call = this->call();
    auto outcomes = postgres::finish(call.runner(), reports, waiters);
    for (const FinishOutcome& outcome : outcomes) {
      if (outcome.had_concurrency_key) call->claim.forget_positions();
    }
    tell_if(!reports.empty());
    return outcomes;
  }

  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, WaitingClaims& waiters) override {
    const Call call = this->call();
    auto outcomes = postgres::commit_turns(call.runner(), turns, waiters);
    tell_if_changed_early(call, !turns.empty());
    return outcomes;
  }

  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    const Call call = this->call();
    auto outcomes = postgres::control(call.runner(), requests);
    tell_if_changed_early(call, std::any_of(outcomes.begin(), outcomes.end(), [](const ControlOutcome& outcome) {
                            return outcome.changed && !outcome.replayed;
                          }));
    return outcomes;
  }

  SweepOutcome sweep(std::int32_t limit) override {
    const Call call = this->call();
    SweepOutcome outcome = call->sweep(limit);
    tell_if_changed_early(call, !outcome.effects.closed.empty() || !outcome.effects.ready.empty());
    return outcome;
  }

  PurgeOutcome purge(std::int32_t limit) override { return postgres::purge(call().runner(), limit); }
  std::int64_t purge_requests(std::int32_t limit) override { return postgres::purge_requests(call().runner(), limit); }

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    return std::move(find_all(name_space, {&id, 1}).front());
  }
  std::vector<std::optional<Execution>> find_all(const std::string& name_space,
                                                 std::span<const ExecutionId> ids) override {
    return postgres::find_all(call().runner(), name_space, ids);
  }
  Inspection inspect(const std::string& from, std::int32_t limit) override {
    return postgres::inspect(call().runner(), from, limit);
  }
  Page list(const ListFilter& filter) override { return postgres::list(call().runner(), filter); }
  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    return postgres::count(call().runner(), name_space);
  }
  std::vector<WorkerInfo> workers(const std::string& name_space) override {
    return postgres::workers(call().runner(), name_space);
  }
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override {
    return postgres::why(call().runner(), name_space, id);
  }
  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override {
    return postgres::find_identity(call().runner(), hash);
  }
  std::vector<std::optional<ExecutionId>> owners(std::span<const OwnerQuery> queries) override {
    return postgres::owners(call().runner(), queries);
  }
  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    return postgres::history(call().runner(), run, after, limit);
  }
  std::vector<SettingDocument> settings() override { return postgres::settings(call().runner()); }

  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    return postgres::release_identity(call().runner(), name_space, hash);
  }

  void put_setting(const SettingDocument& setting) override {
    postgres::put_setting(call().runner(), setting);
    tell_if(true);
  }

  ActivityRows& activities() override { return activities_; }

  void check() override { write_check(call().runner()); }

  void watch(std::function<void()> on_change) override {
    std::unique_ptr<Listener> next;
    if (on_change) next = std::make_unique<Listener>(options_, handle_, timeout_, std::move(on_change));
    const std::lock_guard lock(listener_mutex_);
    listener_.swap(next);
  }

 private:
  std::shared_ptr<Opened> opened() {
    const std::lock_guard lock(mutex_);
    return opened_;
  }

  Call call() { return {opened(), timeout_}; }

  std::shared_ptr<Opened> open(bool create, bool migrate_older) {
    ConnectionOptions options = options_;
    options.identity = prepare(create, migrate_older);
    options.statement_timeout_ms = static_cast<int>(timeout_.count());
    return std::make_shared<Opened>(
        std::move(options), connections_, clock_, [this] { tell_replaced(); }, [this] { tell_if(true); }, fast_);
  }

  // On a separate connection, because migrating uses another protocol. Returns the identity.
  std::string prepare(bool create, bool migrate_older) {
    try {
      Connection connection(options_);
      refuse_pooler(connection, options_);
      prepare_schema(connection, options_.schema, create, migrate_older);
      return read_identity(connection, options_.schema);
    } catch (const Refused& refused) {
      throw refused.as_failure();
    } catch (const Lost& lost) {
      throw lost.as_failure();
    }
  }

  void tell_replaced() {
    const std::lock_guard lock(listener_mutex_);
    if (listener_) listener_->look_now();
  }

  // Something may have become ready whose turn is before that of what was claimed last.
  void tell_if_changed_early(const Call& call, bool changed) {
    if (changed) call->claim.forget_positions();
    tell_if(changed);
  }

  void tell_if(bool changed) {
    if (changed && notifies_) notifier_.changed();
  }

  Interrupt interrupt_;
  const ConnectionOptions options_;
  const fast::Switches fast_;
  const std::size_t connections_;
  const Duration timeout_;
  const Clock* const clock_;
  const std::string handle_;
  CallMutex reopening_;
  std::mutex mutex_;
  std::shared_ptr<Opened> opened_;
  std::shared_ptr<const QueuePolicies> policies_;
  CurrentActivities activities_;
  const bool notifies_;
  Notifier notifier_;
  std::mutex listener_mutex_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace

std::unique_ptr<Store> open_postgres_store(const PostgresOptions& options, const Clock* clock) {
  return std::make_unique<PostgresStore>(options, clock);
}

}  // namespace hapax
