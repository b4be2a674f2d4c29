#include "engine/unclaimed.h"

#include <algorithm>
#include <map>

namespace hapax {

namespace {

constexpr Duration kLong = std::chrono::minutes(1);

bool has_waited(const QueueCount& count, Time now) {
  return count.pending > 0 && count.oldest_run_at && *count.oldest_run_at + kLong <= now;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Those of one queue that have claimed within the last minute, or are busy: a worker that holds something may have no
// room for more.
class Claimers {
 public:
  Claimers(const std::vector<WorkerInfo>& workers, const std::string& queue, Time now) {
    for (const WorkerInfo& worker : workers) {
      const bool is_there = worker.last_seen_at + kLong > now || worker.running > 0;
      if (is_there && has(worker.queues, queue)) claimers_.push_back(&worker);
    }
  }

  bool none() const { return claimers_.empty(); }
  bool claim_any(Kind kind) const {
    return any_of([&](const WorkerInfo& worker) { return claims(worker, kind) && worker.types.empty(); });
  }
  bool claim(Kind kind, const std::string& type) const {
    return claim_any(kind) ||
           any_of([&](const WorkerInfo& worker) { return claims(worker, kind) && has(worker.types, type); });
  }

 private:
  static bool claims(const WorkerInfo& worker, Kind kind) {
    return kind == Kind::workflow ? worker.workflows : worker.tasks;
  }
  template <class Is>
  bool any_of(Is is) const {
    return std::any_of(claimers_.begin(), claimers_.end(), [&](const WorkerInfo* worker) { return is(*worker); });
  }

  std::vector<const WorkerInfo*> claimers_;
};

// Of each type that nobody claims, the one that has waited longest of those looked at.
void look_at(Engine& engine, const std::string& name_space, const std::string& queue, Kind kind,
             const Claimers& claimers, Time now, std::vector<Unclaimed>& found) {
  ListFilter filter;
  filter.name_space = name_space;
  filter.kind = kind;
  filter.queue = queue;
  filter.status = Status::pending;
  filter.limit = kMostLookedAt;
  std::map<std::string, Unclaimed> by_type;
  for (const Execution& pending : engine.list(filter)) {
    if (pending.run_at + kLong > now || claimers.claim(kind, pending.type)) continue;
    const Unclaimed each{queue, pending.type, kind, pending.id, pending.run_at};
    const auto [known, is_new] = by_type.emplace(pending.type, each);
    if (!is_new && each.run_at < known->second.run_at) known->second = each;
  }
  for (auto& [type, each] : by_type) found.push_back(std::move(each));
}

}  // namespace

std::vector<Unclaimed> find_unclaimed(Engine& engine, const std::string& name_space,
                                      const std::vector<QueueView>& queues, Time now) {
  std::vector<const QueueView*> waiting;
  for (const QueueView& queue : queues) {
    const bool is_paused = queue.settings.paused.value_or(false);
    if (!is_paused && has_waited(queue.count, now)) waiting.push_back(&queue);
  }
  std::vector<Unclaimed> found;
  if (waiting.empty()) return found;
  waiting.resize(std::min(waiting.size(), kMostUnclaimedQueues));
  const std::vector<WorkerInfo> workers = engine.workers(name_space);
  for (const QueueView* queue : waiting) {
    const Claimers claimers(workers, queue->name, now);
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      if (!claimers.claim_any(kind)) look_at(engine, name_space, queue->name, kind, claimers, now, found);
    }
  }
  return found;
}

std::set<std::pair<std::string, std::string>> unclaimed_queues(Engine& engine, std::span<const QueueCount> counts,
                                                               Time now) {
  std::map<std::string, std::vector<WorkerInfo>> workers;  // by namespace, of those that something waits in
  std::set<std::pair<std::string, std::string>> unclaimed;
  for (const QueueCount& count : counts) {
    if (!has_waited(count, now)) continue;
    auto known = workers.find(count.name_space);
    if (known == workers.end()) known = workers.emplace(count.name_space, engine.workers(count.name_space)).first;
    if (Claimers(known->second, count.queue, now).none()) unclaimed.emplace(count.name_space, count.queue);
  }
  return unclaimed;
}

}  // namespace hapax
