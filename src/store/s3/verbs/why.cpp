#include "store/rules/why.h"

#include <algorithm>
#include <map>

#include "store/s3/verbs/queue_scan.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

// Names are listed a thousand at a time, and objects are read a few at a time: so many of each.
constexpr int kMostListings = 10;
constexpr std::size_t kMostRead = 200, kReadAtOnce = 16;

class S3Why final : public rules::WhyRows {
 public:
  explicit S3Why(const Batch& batch) : batch_(batch) {}

  Time now() override { return batch_.now; }
  const QueuePolicies& policies() override { return batch_.policies; }
  std::optional<Execution> find(const ExecutionId& id) override {
    const TaskDocument* document = read(id);
    return document ? std::optional(document->execution) : std::nullopt;
  }

  std::int64_t count_before(const Execution& pending) override {
    std::int64_t count = 0;
    const rules::Rank own = rules::rank_of(pending);
    for_each_hint(ready_prefix(pending.name_space, pending.queue, pending.kind), "", [&](const Hint& hint) {
      count += hint.id != pending.id && hint.time <= batch_.now && rank_of(hint).goes_before(own);
    });
    return std::min<std::int64_t>(count, kMostCounted);
  }
  std::int64_t count_running(const Execution& pending) override {
    std::int64_t count = 0;
    for_each_running(pending, [&](const Hint&) { ++count; });
    return count;
  }
  std::vector<ExecutionId> running_with_key(const Execution& pending, std::int32_t limit) override {
    std::vector<ExecutionId> holders;
    const std::string key = digest_of_key(*pending.concurrency_key);
    for_each_running(pending, [&](const Hint& hint) {
      if (hint.concurrency_key == key && std::ssize(holders) < limit) holders.push_back(hint.id);
    });
    return holders;
  }
  RateState rate(const Execution& pending) override {
    const std::string name = queue_name(pending.name_space, pending.queue);
    const Found found = batch_.bucket.look({&name, 1}).front();
    return found.exists() ? read_queue(found.content).rate : RateState{};
  }
  std::int64_t count_closed_since(const Execution& pending, Time since) override {
    Hint first;
    first.kind = Hint::Kind::closed;
    first.time = since;
    first.name_space = pending.name_space;
    first.queue = pending.queue;
    first.execution_kind = pending.kind;
    std::int64_t count = 0;
    for_each_hint(closed_prefix(pending.name_space, pending.queue, pending.kind), first.name(),
                  [&](const Hint& hint) { count += hint.time > since; });
    return count;
  }

  std::optional<std::vector<WorkerInfo>> claimers(const Execution& pending, Time since, std::int32_t limit) override {
    return s3::claimers(batch_, pending, since, limit);
  }

  std::vector<Wait> waits_of(const ExecutionId& run) override {
    const TaskDocument* document = read(run);
    return document ? document->waits : std::vector<Wait>();
  }
  std::vector<ExecutionId> open_steps_of(const ExecutionId& run, std::int32_t limit) override {
    std::vector<ExecutionId> steps, open;
    for_each_hint(steps_prefix(run), "", [&](const Hint& hint) {
      if (std::find(steps.begin(), steps.end(), hint.id) == steps.end()) steps.push_back(hint.id);
    });
    steps.resize(std::min(steps.size(), kMostRead));
    for (std::size_t i = 0; i < steps.size() && std::ssize(open) < limit; i += kReadAtOnce) {
      read_all({steps.begin() + static_cast<std::ptrdiff_t>(i),
                steps.begin() + static_cast<std::ptrdiff_t>(std::min(i + kReadAtOnce, steps.size()))});
      for (std::size_t j = i; j < std::min(i + kReadAtOnce, steps.size()); ++j) {
        const TaskDocument* step = read(steps[j]);
        if (step && !is_closed(step->execution.status) && std::ssize(open) < limit) open.push_back(steps[j]);
      }
    }
    return open;
  }

 private:
  template <class Visit>
  void for_each_hint(const std::string& prefix, std::string after, Visit visit) {
    for (int i = 0; i < kMostListings; ++i) {
      const Listing listing = batch_.bucket.list(prefix, after);
      for (const Listed& listed : listing.objects) {
        if (const auto hint = Hint::parse(listed.name)) visit(*hint);
      }
      if (!listing.more || listing.objects.empty()) return;
      after = listing.objects.back().name;
    }
  }
  template <class Visit>
  void for_each_running(const Execution& pending, Visit visit) {
    for_each_hint(running_prefix(pending.name_space, pending.queue, pending.kind), "", visit);
  }

  void read_all(const std::vector<ExecutionId>& ids) {
    std::vector<std::string> names;
    for (const ExecutionId& id : ids) names.push_back(task_name(id));
    const std::vector<Found> found = batch_.bucket.look(names);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (found[i].exists()) documents_.insert_or_assign(ids[i], read_task(found[i].content));
    }
  }
  const TaskDocument* read(const ExecutionId& id) {
    if (!documents_.contains(id)) read_all({id});
    const auto document = documents_.find(id);
    return document == documents_.end() ? nullptr : &document->second;
  }

  const Batch& batch_;
  std::map<ExecutionId, TaskDocument> documents_;
};

}  // namespace

std::optional<Why> why(const Batch& batch, const std::string& name_space, const ExecutionId& id) {
  S3Why rows(batch);
  return rules::why(rows, name_space, id);
}

}  // namespace hapax::s3
