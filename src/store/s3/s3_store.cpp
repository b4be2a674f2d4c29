#include "store/s3/s3_store.h"

#include <fmt/format.h>

#include <mutex>
#include <type_traits>

#include "store/s3/activity_objects.h"
#include "store/s3/archive.h"
#include "store/s3/in_flight.h"
#include "store/s3/pulse.h"
#include "store/s3/verbs.h"

namespace hapax {
namespace {

using s3::Batch;
using s3::Bucket;

constexpr std::int64_t kVersion = 1;

struct Format {
  std::int64_t version = kVersion;
};
template <class Archive>
void members(Archive& archive, Format& format) {
  archive("version", format.version);
}

class S3Store final : public Store {
 public:
  S3Store(std::shared_ptr<ObjectStore> objects, const S3StoreOptions& options)
      : objects_(std::move(objects)), in_flight_(options.in_flight), pulse_(objects_, options.pulse) {
    ensure_format();
  }

  Time now() override { return objects_->now(); }

  void migrate() override {
    ensure_format();
    rebuild_s3_hints(*objects_);
  }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    const std::lock_guard lock(mutex_);
    policies_ = std::move(policies);
  }

  Committers committers() const override { return {.submit = 4}; }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters&) override {
    return changing([&](const Batch& batch) { return s3::submit(batch, submissions); });
  }
  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    return changing([&](const Batch& batch) {
      std::vector<ClaimOutcome> outcomes;
      for (const ClaimRequest& request : requests) outcomes.push_back(s3::claim(batch, request));
      return outcomes;
    });
  }
  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    return changing([&](const Batch& batch) { return s3::extend(batch, extensions); });
  }
  std::vector<FinishOutcome> finish(std::span<const Report> reports, Waiters&) override {
    return changing([&](const Batch& batch) { return s3::finish(batch, reports); });
  }
  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, Waiters&) override {
    return one_by_one<TurnOutcome>(
        turns, [](const Turn& turn) { return turn.token.execution; },
        [](s3::Workspace& workspace, const Turn& turn) { return s3::commit_turn(workspace, turn); });
  }
  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    return one_by_one<ControlOutcome>(
        requests, [](const ControlRequest& request) { return std::pair(request.workflow_id, request.target); },
        [](s3::Workspace& workspace, const ControlRequest& request) { return s3::control(workspace, request); });
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
    Bucket bucket(*objects_);
    return s3::find(bucket, name_space, id);
  }
  Inspection inspect(const std::string& from, std::int32_t limit) override {
    Bucket bucket(*objects_);
    return s3::inspect(bucket, from, limit);
  }
  Page list(const ListFilter& filter) override {
    Bucket bucket(*objects_);
    return s3::list(bucket, filter);
  }
  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    Bucket bucket(*objects_);
    return s3::count(bucket, name_space);
  }
  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    Bucket bucket(*objects_);
    return s3::history(bucket, run, after, limit);
  }
  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override {
    Bucket bucket(*objects_);
    const auto rules = policies();
    return s3::find_identity({bucket, *rules, now()}, hash);
  }
  std::vector<SettingDocument> settings() override {
    Bucket bucket(*objects_);
    return s3::settings(bucket);
  }

  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    return changing([&](const Batch& batch) { return s3::release_identity(batch, name_space, hash); });
  }
  void put_setting(const SettingDocument& setting) override {
    changing([&](const Batch& batch) { return s3::put_setting(batch.bucket, setting), true; });
  }

  ActivityRows& activities() override { return activities_; }

  void check() override {
    const std::string name = "checks/" + s3::random_token();
    objects_->put(Put{name, s3::seal(""), std::nullopt});
    objects_->remove(name);
  }

  void watch(std::function<void()> on_change) override { pulse_.listen(std::move(on_change)); }

 private:
  void ensure_format() {
    const std::string name(s3::kFormat);
    Bucket bucket(*objects_);
    s3::Found format = bucket.look({&name, 1}).front();
    if (!format.exists()) {
      bucket.put(Put{name, s3::seal(s3::Writer::text(Format())), std::nullopt});
      format = bucket.look({&name, 1}).front();
    }
    check_format(format.content);
  }

  static void check_format(const std::string& content) {
    const auto format = s3::Reader::object<Format>(content);
    if (format.version <= kVersion) return;
    throw Failure(
        Failure::Code::misuse,
        fmt::format("the bucket holds data of the format {}, and this program knows {} at most: use a newer hapax",
                    format.version, kVersion));
  }

  std::shared_ptr<const QueuePolicies> policies() {
    const std::lock_guard lock(mutex_);
    return policies_;
  }

  // A call that failed after something was written has done nobody knows what: the same again settles it.
  template <class Work>
  std::invoke_result_t<Work, const Batch&> changing(Work work) {
    Bucket bucket(*objects_, &marks_);
    const auto rules = policies();
    try {
      auto outcome = work(Batch{bucket, *rules, now(), in_flight_});
      if (bucket.wrote()) pulse_.changed();
      return outcome;
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::unavailable || !bucket.wrote()) throw;
      pulse_.changed();
      throw Failure(Failure::Code::outcome_unknown, failure.what());
    }
  }

  template <class Outcome, class Item, class KeyOf, class Work>
  std::vector<Outcome> one_by_one(std::span<const Item> items, KeyOf key_of, Work work) {
    return changing([&](const Batch& batch) {
      std::vector<Outcome> outcomes(items.size());
      s3::for_each_in_flight(
          items.size(), batch.in_flight, [&](std::size_t i) { return key_of(items[i]); },
          [&](std::size_t i) {
            outcomes[i] = s3::transact(batch, [&](s3::Workspace& workspace) { return work(workspace, items[i]); });
          });
      return outcomes;
    });
  }

  const std::shared_ptr<ObjectStore> objects_;
  const std::size_t in_flight_;
  std::mutex mutex_;
  s3::QueueMarks marks_;
  std::shared_ptr<const QueuePolicies> policies_ = std::make_shared<QueuePolicies>();
  s3::Pulse pulse_;
  s3::ActivityObjects activities_{objects_, [this] { pulse_.changed(); }};
};

}  // namespace

std::unique_ptr<Store> open_s3_store(std::shared_ptr<ObjectStore> objects, const S3StoreOptions& options) {
  return std::make_unique<S3Store>(std::move(objects), options);
}

}  // namespace hapax
