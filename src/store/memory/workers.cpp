// Workers that announced themselves.
#include "store/rules/workers.h"

#include <algorithm>

#include "store/memory/verbs.h"

namespace hapax::memory {

namespace {

using Place = std::map<std::string, WorkerInfo>::const_iterator;

Place longest_unseen(const std::map<std::string, WorkerInfo>& workers) {
  return std::min_element(workers.begin(), workers.end(),
                          [](const auto& a, const auto& b) { return a.second.last_seen_at < b.second.last_seen_at; });
}

}  // namespace

void announce(Tables& tables, const WorkerInfo& worker) {
  auto& workers = tables.workers[worker.name_space];
  workers.insert_or_assign(worker.name, worker);
  if (std::ssize(workers) > rules::kMostWorkers) workers.erase(longest_unseen(workers));
}

std::vector<WorkerInfo> workers(const Tables& tables, const std::string& name_space, Time now) {
  std::vector<WorkerInfo> found;
  const auto workers = tables.workers.find(name_space);
  if (workers == tables.workers.end()) return found;
  std::map<std::string, std::int64_t> held;
  std::int64_t counted = 0;
  for (const auto& [due, id] : tables.due()) {  // what runs has a lease that ends
    const Execution& each = *tables.find(id);
    if (each.status != Status::running || each.name_space != name_space) continue;
    if (++counted > rules::kMostHeld) break;
    ++held[each.worker];
  }
  for (const auto& [name, worker] : workers->second) {
    if (worker.last_seen_at + rules::kWorkerMemory <= now) continue;
    found.push_back(worker);
    found.back().running = held[name];
  }
  return found;
}

std::vector<WorkerInfo> claimers(const Tables& tables, const Execution& pending, Time since, std::int32_t limit) {
  std::vector<WorkerInfo> others;
  const auto workers = tables.workers.find(pending.name_space);
  if (workers == tables.workers.end()) return others;
  for (const auto& [name, worker] : workers->second) {
    if (worker.last_seen_at <= since || !rules::claims_queue_of(worker, pending)) continue;
    if (rules::claims(worker, pending)) return {worker};
    if (std::ssize(others) < limit) others.push_back(worker);
  }
  return others;
}

void forget_workers(Tables& tables, Time now) {
  for (auto& [name_space, workers] : tables.workers) {
    std::erase_if(workers, [&](const auto& each) { return each.second.last_seen_at + rules::kWorkerMemory <= now; });
  }
  std::erase_if(tables.workers, [](const auto& of_namespace) { return of_namespace.second.empty(); });
}

}  // namespace hapax::memory
