#include "store/postgres/postgres_store.h"

#include <algorithm>

#include "store/postgres/activity_tables.h"
#include "store/postgres/schema.h"
#include "store/postgres/url.h"
#include "store/postgres/verbs.h"
#include "store/postgres/watch.h"

namespace hapax {
namespace {

using namespace postgres;

ConnectionOptions connection_options(const PostgresOptions& options) {
  Url url = parse_url(options.url);
  ConnectionOptions connection;
  connection.conninfo = std::move(url.conninfo);
  connection.schema = std::move(url.schema);
  connection.pooled = url.pooled;
  return connection;
}

class PostgresStore final : public Store {
 public:
  PostgresStore(const PostgresOptions& options, const Clock* clock)
      : options_(connection_options(options)),
        handle_(new_handle_name()),
        runner_(options_, options.connections, clock),
        submit_(runner_),
        claim_(runner_),
        sweep_(runner_),
        activities_(runner_, [this] { tell_if(true); }),
        notifies_(options.notify),
        notifier_((prepare(options.create, options.migrate), options_), handle_) {
    settings();  // and the server's time is known
  }

  Time now() override { return runner_.now(); }

  void migrate() override { prepare(true, true); }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    runner_.set_policies(std::move(policies));
    claim_.limits_changed();
    claim_.forget_positions();
  }

  // While one waits for the disk, another computes; and their waits are one. But each costs as much as some ten items. A large
  // claim is read here while the server is at the next one.
  Committers committers() const override { return {.submit = 2, .claim = 2, .commit_turns = 2, .worth_items = 8}; }

  bool hands_out() const override { return true; }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters& waiters) override {
    auto outcomes = submit_(submissions, waiters);
    for (const Submission& submission : submissions) {
      if (submission.run_at) claim_.forget_positions();
    }
    tell_if(std::any_of(outcomes.begin(), outcomes.end(),
                        [](const SubmitOutcome& outcome) { return outcome.kind == SubmitOutcome::Kind::created; }));
    return outcomes;
  }

  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    auto outcomes = claim_(requests);
    tell_if(claim_.take_left_some());
    return outcomes;
  }

  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    auto outcomes = postgres::extend(runner_, extensions);
    tell_if_changed_early(std::any_of(extensions.begin(), extensions.end(),
                                      [](const Extension& extension) { return extension.lease <= Duration(0); }));
    return outcomes;
  }

  std::vector<FinishOutcome> finish(std::span<const Report> reports, Waiters& waiters) override {
    auto outcomes = postgres::finish(runner_, reports, waiters);
    for (const FinishOutcome& outcome : outcomes) {
      if (outcome.had_concurrency_key) claim_.forget_positions();
    }
    tell_if(!reports.empty());
    return outcomes;
  }

  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, Waiters& waiters) override {
    auto outcomes = postgres::commit_turns(runner_, turns, waiters);
    tell_if_changed_early(!turns.empty());
    return outcomes;
  }

  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    auto outcomes = postgres::control(runner_, requests);
    tell_if_changed_early(std::any_of(outcomes.begin(), outcomes.end(), [](const ControlOutcome& outcome) {
      return outcome.changed && !outcome.replayed;
    }));
    return outcomes;
  }

  SweepOutcome sweep(std::int32_t limit) override {
    SweepOutcome outcome = sweep_(limit);
    tell_if_changed_early(!outcome.effects.closed.empty() || !outcome.effects.ready.empty());
    return outcome;
  }

  PurgeOutcome purge(std::int32_t limit) override { return postgres::purge(runner_, limit); }

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    return std::move(find_all(name_space, {&id, 1}).front());
  }
  std::vector<std::optional<Execution>> find_all(const std::string& name_space,
                                                 std::span<const ExecutionId> ids) override {
    return postgres::find_all(runner_, name_space, ids);
  }
  Page list(const ListFilter& filter) override { return postgres::list(runner_, filter); }
  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    return postgres::count(runner_, name_space);
  }
  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override {
    return postgres::find_identity(runner_, hash);
  }
  std::vector<std::optional<ExecutionId>> owners(std::span<const OwnerQuery> queries) override {
    return postgres::owners(runner_, queries);
  }
  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    return postgres::history(runner_, run, after, limit);
  }
  std::vector<SettingDocument> settings() override { return postgres::settings(runner_); }

  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    return postgres::release_identity(runner_, name_space, hash);
  }

  void put_setting(const SettingDocument& setting) override {
    postgres::put_setting(runner_, setting);
    tell_if(true);
  }

  ActivityRows& activities() override { return activities_; }

  void check() override { write_check(runner_); }

  void watch(std::function<void()> on_change) override {
    listener_.reset();
    if (on_change) listener_ = std::make_unique<Listener>(options_, handle_, std::move(on_change));
  }

 private:
  // On a connection of its own: migrating speaks another protocol.
  void prepare(bool create, bool migrate_older) {
    ConnectionOptions options = options_;
    try {
      Connection connection(options);
      prepare_schema(connection, options.schema, create, migrate_older);
    } catch (const Refused& refused) {
      throw refused.as_failure();
    } catch (const Lost& lost) {
      throw lost.as_failure();
    }
  }

  // Something may have become ready whose turn is before that of what was claimed last.
  void tell_if_changed_early(bool changed) {
    if (changed) claim_.forget_positions();
    tell_if(changed);
  }

  void tell_if(bool changed) {
    if (changed && notifies_) notifier_.changed();
  }

  const ConnectionOptions options_;
  const std::string handle_;
  Runner runner_;
  Submit submit_;
  Claim claim_;
  Sweep sweep_;
  ActivityTables activities_;
  const bool notifies_;
  Notifier notifier_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace

std::unique_ptr<Store> open_postgres_store(const PostgresOptions& options, const Clock* clock) {
  return std::make_unique<PostgresStore>(options, clock);
}

}  // namespace hapax
