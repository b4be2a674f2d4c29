#include "store/s3/s3_store.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <type_traits>

#include "store/rules/workflow.h"
#include "store/s3/documents/activity_objects.h"
#include "store/s3/documents/format.h"
#include "store/s3/pulse.h"
#include "store/s3/s3_rows.h"
#include "store/s3/transaction/in_flight.h"
#include "store/s3/verbs/verbs.h"

namespace hapax {
namespace {

using s3::Batch;
using s3::Bucket;

class S3Store final : public Store {
 public:
  S3Store(std::shared_ptr<ObjectStore> objects, const S3StoreOptions& options)
      : objects_(std::move(objects)),
        options_(options),
        identity_(open_format(options.create)),
        pulse_(objects_, options.pulse, [this] { return is_same_store(); }) {
    pulse_.carry(identity_);
  }

  Time now() override { return objects_->now(); }

  void migrate() override {
    open_format(true);
    rebuild_s3_hints(*objects_);
  }

  std::string identity() override {
    const std::lock_guard lock(mutex_);
    return identity_;
  }
  bool is_replaced() override { return replaced_; }
  void reopen() override {
    const CallDeadline deadline(options_.timeout);
    if (!replaced_) return;
    std::string identity = open_format(false);
    pulse_.carry(identity);
    const std::lock_guard lock(mutex_);
    identity_ = std::move(identity);
    marks_.forget();
    replaced_ = false;
  }
  void interrupt() override { objects_->interrupt(); }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    const std::lock_guard lock(mutex_);
    policies_ = std::move(policies);
  }

  Parallelism parallelism() const override { return {.submit = 4}; }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims&) override {
    return changing([&](const Batch& batch) { return s3::submit(batch, submissions); });
  }
  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    return changing([&](const Batch& batch) {
      std::vector<ClaimOutcome> outcomes;
      for (const ClaimRequest& request : requests) outcomes.push_back(s3::claim(batch, request));
      return outcomes;
    });
  }
  // Nothing becomes claimable by it, so nobody is told.
  void announce(std::span<const WorkerInfo> workers) override {
    const CallDeadline deadline(options_.timeout);
    require_ours();
    Bucket bucket(*objects_);
    s3::announce(bucket, workers);
  }
  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    return changing([&](const Batch& batch) { return s3::extend(batch, extensions); });
  }
  std::vector<FinishOutcome> finish(std::span<const Report> reports, WaitingClaims&) override {
    return changing([&](const Batch& batch) { return s3::finish(batch, reports); });
  }
  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, WaitingClaims&) override {
    return one_by_one<TurnOutcome>(turns, [](const Turn& turn) { return turn.token.execution; }, rules::commit_turn);
  }
  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    return one_by_one<ControlOutcome>(
        requests, [](const ControlRequest& request) { return std::pair(request.workflow_id, request.target); },
        rules::control);
  }
  SweepOutcome sweep(std::int32_t limit) override {
    return changing([&](const Batch& batch) { return s3::sweep(batch, limit); });
  }
  PurgeOutcome purge(std::int32_t limit) override {
    return changing([&](const Batch& batch) { return s3::purge(batch, limit); });
  }
  std::int64_t purge_requests(std::int32_t limit) override {
    return changing([&](const Batch& batch) { return s3::purge_requests(batch, limit); });
  }

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    return reading([&](Bucket& bucket) { return s3::find(bucket, name_space, id); });
  }
  Inspection inspect(const std::string& from, std::int32_t limit) override {
    return reading([&](Bucket& bucket) { return s3::inspect(bucket, from, limit); });
  }
  Page list(const ListFilter& filter) override {
    return reading([&](Bucket& bucket) { return s3::list(bucket, filter); });
  }
  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    return reading([&](Bucket& bucket) { return s3::count(bucket, name_space); });
  }
  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    return reading([&](Bucket& bucket) { return s3::history(bucket, run, after, limit); });
  }
  std::vector<WorkerInfo> workers(const std::string& name_space) override {
    const auto rules = policies();
    return reading([&](Bucket& bucket) { return s3::workers({bucket, *rules, now()}, name_space); });
  }
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override {
    const auto rules = policies();
    return reading([&](Bucket& bucket) { return s3::why({bucket, *rules, now()}, name_space, id); });
  }
  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override {
    return reading([&](Bucket& bucket) -> std::optional<FoundIdentity> {
      const auto name = bucket.find_record(hash);
      return name ? find_record(bucket, *name) : std::nullopt;
    });
  }
  std::optional<FoundIdentity> find_identity_in(const NamedScope& scope, const IdentityHash& hash) override {
    return reading([&](Bucket& bucket) { return find_record(bucket, s3::record_name(scope, hash)); });
  }
  std::vector<SettingDocument> settings() override {
    return reading([](Bucket& bucket) { return s3::settings(bucket); });
  }

  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    return changing([&](const Batch& batch) { return s3::release_identity(batch, name_space, hash); });
  }
  void put_setting(const SettingDocument& setting) override {
    changing([&](const Batch& batch) { return s3::put_setting(batch.bucket, setting), true; });
  }

  ActivityRows& activities() override { return activities_; }

  void check() override {
    const CallDeadline deadline(options_.timeout);
    require_ours();
    const std::string name = "checks/" + s3::random_token();
    objects_->put(Put{name, s3::seal(""), std::nullopt});
    objects_->remove(name);
  }

  void watch(std::function<void()> on_change) override { pulse_.listen(std::move(on_change)); }

 private:
  // Gives back the identity of the store that is there.
  std::string open_format(bool create) {
    Bucket bucket(*objects_);
    std::optional<s3::Format> format = s3::read_format(bucket);
    if (!format && !create) {
      throw Failure(Failure::Code::misuse, "there is no store yet; hapax serve or hapax migrate creates it");
    }
    if (!format) format = s3::create_format(*objects_, options_.probe);
    if (format->version > s3::kFormatVersion) {
      throw Failure(
          Failure::Code::misuse,
          fmt::format("the bucket holds data of the format {}, and this program knows {} at most: use a newer hapax",
                      format->version, s3::kFormatVersion));
    }
    if (format->version < s3::kFormatVersion && !options_.migrate) {
      throw Failure(
          Failure::Code::misuse,
          fmt::format("the bucket holds data of the older format {}: stop every program that uses it, and run "
                      "`hapax migrate` to bring it to {}",
                      format->version, s3::kFormatVersion));
    }
    if (format->version < s3::kFormatVersion) format = s3::upgrade_format(*objects_);
    return format->identity;
  }

  bool is_same_store() {
    Bucket bucket(*objects_);
    const std::optional<s3::Format> format = s3::read_format(bucket);
    if (!format || format->identity != identity()) replaced_ = true;
    return !replaced_;
  }

  void require_ours() const {
    if (!replaced_) return;
    throw Failure(
        Failure::Code::unavailable,
        "the bucket holds another store, or none, since this program opened it; it is opened anew, try again");
  }

  std::shared_ptr<const QueuePolicies> policies() {
    const std::lock_guard lock(mutex_);
    return policies_;
  }

  template <class Work>
  std::invoke_result_t<Work, Bucket&> reading(Work work) {
    const CallDeadline deadline(options_.timeout);
    require_ours();
    Bucket bucket(*objects_);
    return work(bucket);
  }

  std::optional<FoundIdentity> find_record(Bucket& bucket, const std::string& name) {
    const auto rules = policies();
    return s3::find_identity({bucket, *rules, now()}, name);
  }

  // After a call that failed in the middle of its writes the outcome is unknown: repeating it settles that.
  template <class Work>
  std::invoke_result_t<Work, const Batch&> changing(Work work) {
    const CallDeadline deadline(options_.timeout);
    require_ours();
    Bucket bucket(*objects_, &marks_);
    const auto rules = policies();
    try {
      auto outcome = work(Batch{bucket, *rules, now(), options_.in_flight});
      if (bucket.wrote()) pulse_.changed();
      return outcome;
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::unavailable || !bucket.wrote()) throw;
      pulse_.changed();
      throw Failure(Failure::Code::outcome_unknown, failure.what());
    }
  }

  template <class Outcome, class Item, class KeyOf>
  std::vector<Outcome> one_by_one(std::span<const Item> items, KeyOf key_of,
                                  Outcome (*rule)(rules::Rows&, const Item&)) {
    return changing([&](const Batch& batch) {
      std::vector<Outcome> outcomes(items.size());
      s3::for_each_in_flight(
          items.size(), batch.in_flight, [&](std::size_t i) { return key_of(items[i]); },
          [&](std::size_t i) {
            outcomes[i] = s3::transact(batch, [&](s3::Workspace& workspace) {
              s3::S3Rows rows(workspace);
              return rule(rows, items[i]);
            });
          });
      return outcomes;
    });
  }

  const std::shared_ptr<ObjectStore> objects_;
  const S3StoreOptions options_;
  std::mutex mutex_;
  s3::QueueMarks marks_;
  std::string identity_;
  std::atomic<bool> replaced_ = false;
  std::shared_ptr<const QueuePolicies> policies_ = std::make_shared<QueuePolicies>();
  s3::Pulse pulse_;
  s3::ActivityObjects activities_{objects_, options_.timeout, [this] { pulse_.changed(); }};
};

}  // namespace

std::unique_ptr<Store> open_s3_store(std::shared_ptr<ObjectStore> objects, const S3StoreOptions& options) {
  return std::make_unique<S3Store>(std::move(objects), options);
}

}  // namespace hapax
