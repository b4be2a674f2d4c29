// The verbs of the S3 store: each takes the whole batch, and sends what does not depend on each other together.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "store/s3/transaction/workspace.h"
#include "store/store.h"

namespace hapax::s3 {

// What a batch is applied with.
struct Batch {
  Bucket& bucket;
  const QueuePolicies& policies;
  Time now;
  std::size_t in_flight = 1;  // items at once, if they go one by one
};

template <class Work>
auto transact(const Batch& batch, Work work) {
  return transact(batch.bucket, batch.policies, batch.now, std::move(work));
}

// ---- batches

std::vector<SubmitOutcome> submit(const Batch& batch, std::span<const Submission> submissions);
ClaimOutcome claim(const Batch& batch, const ClaimRequest& request);
std::vector<ExtendOutcome> extend(const Batch& batch, std::span<const Extension> extensions);
std::vector<FinishOutcome> finish(const Batch& batch, std::span<const Report> reports);
SweepOutcome sweep(const Batch& batch, std::int32_t limit);
PurgeOutcome purge(const Batch& batch, std::int32_t limit);
std::int64_t purge_requests(const Batch& batch, std::int32_t limit);

// ---- reading

std::optional<Execution> find(Bucket& bucket, const std::string& name_space, const ExecutionId& id);
Inspection inspect(Bucket& bucket, const std::string& from, std::int32_t limit);
Page list(Bucket& bucket, const ListFilter& filter);
std::vector<QueueCount> count(Bucket& bucket, const std::optional<std::string>& name_space);
std::vector<Event> history(Bucket& bucket, const ExecutionId& run, std::int64_t after, std::int32_t limit);
std::optional<Why> why(const Batch& batch, const std::string& name_space, const ExecutionId& id);
std::vector<WorkerInfo> workers(const Batch& batch, const std::string& name_space);
// As rules::WhyRows::claimers().
std::optional<std::vector<WorkerInfo>> claimers(const Batch& batch, const Execution& pending, Time since,
                                                std::int32_t limit);
std::optional<FoundIdentity> find_identity(const Batch& batch, const std::string& record_name);
std::vector<SettingDocument> settings(Bucket& bucket);
void put_setting(Bucket& bucket, const SettingDocument& setting);
void announce(Bucket& bucket, std::span<const WorkerInfo> workers);
void forget_workers(const Batch& batch, std::int32_t limit);
bool release_identity(const Batch& batch, const std::string& name_space, const IdentityHash& hash);

// ---- changing executions each by itself, many at once

struct TaskWrite {
  std::string name;
  std::optional<Etag> replaces;
  TaskDocument document;
  std::vector<std::string> hints_before;
};
// Whether each was written; those that were not have changed since. `may_go` is called when the hints are written:
// which ones may still be written.
std::vector<bool> write_each(const Batch& batch, std::vector<TaskWrite>& writes,
                             const std::function<std::vector<bool>()>& may_go = {});

// Removes hints that lead nowhere once no writer in flight can still create the object.
void remove_if_left_over(const Batch& batch, const std::vector<Listed>& hints);

}  // namespace hapax::s3
