// Workers that announced themselves, an object for each. No decision rests on them: they are removed without a grave.
#include "store/rules/workers.h"

#include <algorithm>
#include <map>

#include "store/s3/documents/archive.h"
#include "store/s3/verbs/verbs.h"

namespace hapax {

template <class Archive>
void fields(Archive& archive, WorkerInfo& worker) {
  archive("name_space", worker.name_space);
  archive("name", worker.name);
  archive("sdk", worker.origin.sdk);
  archive("version", worker.origin.version);
  archive("host", worker.origin.host);
  archive("pid", worker.origin.pid);
  archive("queues", worker.queues);
  archive("types", worker.types);
  archive("tasks", worker.tasks);
  archive("workflows", worker.workflows);
  archive("last_seen_at", worker.last_seen_at);
}

}  // namespace hapax

namespace hapax::s3 {

namespace {

// Names are listed a thousand at a time, and objects are read a few at a time: so many of each.
constexpr int kMostListings = 11;
constexpr std::size_t kMostRead = 200, kReadAtOnce = 16;
constexpr Duration kListedTo{1000};  // times in a listing are whole seconds

std::vector<Listed> listed_in(Bucket& bucket, const std::string& prefix) {
  std::vector<Listed> all;
  std::string after;
  for (int i = 0; i < kMostListings; ++i) {
    Listing listing = bucket.list(prefix, after);
    std::move(listing.objects.begin(), listing.objects.end(), std::back_inserter(all));
    if (!listing.more || all.empty()) break;
    after = all.back().name;
  }
  return all;
}

void sort_latest_first(std::vector<Listed>& listed) {
  std::stable_sort(listed.begin(), listed.end(),
                   [](const Listed& a, const Listed& b) { return a.modified_at > b.modified_at; });
}

std::vector<WorkerInfo> read_some(Bucket& bucket, std::span<const Listed> listed) {
  std::vector<std::string> names;
  for (const Listed& each : listed) names.push_back(each.name);
  std::vector<WorkerInfo> workers;
  for (const Found& found : bucket.look_at_each(names)) {
    if (found.exists() && found.damage.empty()) workers.push_back(Reader::object<WorkerInfo>(found.content));
  }
  return workers;
}

// How many each holds, as far as so many running executions tell.
std::map<std::string, std::int64_t> held_in(Bucket& bucket, const std::string& name_space) {
  std::vector<std::string> names;
  for (const Listed& listed : listed_in(bucket, namespace_prefix(kRunning, name_space))) {
    const auto hint = Hint::parse(listed.name);
    if (hint && names.size() < kMostRead) names.push_back(task_name(hint->id));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::map<std::string, std::int64_t> held;
  for (std::size_t i = 0; i < names.size(); i += kReadAtOnce) {
    const std::size_t count = std::min(kReadAtOnce, names.size() - i);
    for (const Found& found : bucket.look_at_each(std::span(names).subspan(i, count))) {
      if (!found.exists() || !found.damage.empty()) continue;
      const Execution execution = read_task(found.content).execution;
      if (execution.status == Status::running) ++held[execution.worker];
    }
  }
  return held;
}

}  // namespace

void announce(Bucket& bucket, std::span<const WorkerInfo> workers) {
  std::map<std::string, const WorkerInfo*> last;
  for (const WorkerInfo& worker : workers) last[worker_name(worker.name_space, worker.name)] = &worker;
  std::vector<std::string> names;
  for (const auto& [name, worker] : last) names.push_back(name);
  const std::vector<Found> found = bucket.look_at_each(names);
  std::vector<Put> puts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    puts.push_back(Put{names[i], seal(Writer::text(*last[names[i]])), found[i].etag});
  }
  bucket.put(puts);  // where another process was faster, that one is kept
}

std::vector<WorkerInfo> workers(const Batch& batch, const std::string& name_space) {
  std::vector<Listed> listed = listed_in(batch.bucket, workers_prefix(name_space));
  std::erase_if(listed, [&](const Listed& each) { return each.modified_at + rules::kWorkerMemory <= batch.now; });
  std::vector<WorkerInfo> all;
  for (std::size_t i = 0; i < listed.size(); i += kReadAtOnce) {
    for (WorkerInfo& worker :
         read_some(batch.bucket, std::span(listed).subspan(i, std::min(kReadAtOnce, listed.size() - i)))) {
      if (worker.last_seen_at + rules::kWorkerMemory > batch.now) all.push_back(std::move(worker));
    }
  }
  if (all.empty()) return all;
  auto held = held_in(batch.bucket, name_space);
  for (WorkerInfo& worker : all) worker.running = held[worker.name];
  std::sort(all.begin(), all.end(), [](const WorkerInfo& a, const WorkerInfo& b) { return a.name < b.name; });
  return all;
}

std::optional<std::vector<WorkerInfo>> claimers(const Batch& batch, const Execution& pending, Time since,
                                                std::int32_t limit) {
  std::vector<Listed> listed = listed_in(batch.bucket, workers_prefix(pending.name_space));
  std::erase_if(listed, [&](const Listed& each) { return each.modified_at + kListedTo <= since; });
  sort_latest_first(listed);
  std::vector<WorkerInfo> others;
  for (std::size_t i = 0; i < std::min(listed.size(), kMostRead); i += kReadAtOnce) {
    for (WorkerInfo& worker :
         read_some(batch.bucket, std::span(listed).subspan(i, std::min(kReadAtOnce, listed.size() - i)))) {
      if (worker.last_seen_at <= since || !rules::claims_queue_of(worker, pending)) continue;
      if (rules::claims(worker, pending)) return std::vector<WorkerInfo>{std::move(worker)};
      if (std::ssize(others) < limit) others.push_back(std::move(worker));
    }
  }
  if (listed.size() > kMostRead) return std::nullopt;
  return others;
}

void forget_workers(const Batch& batch, std::int32_t limit) {
  std::vector<std::string> gone;
  std::vector<Listed> listed = listed_in(batch.bucket, std::string(kWorkers));
  sort_latest_first(listed);
  std::map<std::string, std::int64_t> kept_in;  // by namespace
  for (const Listed& each : listed) {
    const bool is_old = each.modified_at + rules::kWorkerMemory <= batch.now;
    const std::string folder = each.name.substr(0, each.name.rfind('/'));
    if ((is_old || ++kept_in[folder] > rules::kMostWorkers) && std::ssize(gone) < limit) gone.push_back(each.name);
  }
  batch.bucket.remove_leftovers(gone);
}

}  // namespace hapax::s3
