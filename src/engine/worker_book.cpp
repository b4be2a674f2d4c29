#include "engine/worker_book.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

namespace hapax {

namespace {

constexpr Duration kTogether{1000};     // what becomes due within this time is told in one call
constexpr std::size_t kMostTold = 500;  // in one call

}  // namespace

bool WorkerBook::Claiming::is_of(const ClaimCall& call) const {
  return tasks == call.tasks && workflows == call.workflows && queues == call.queues && types == call.types;
}

Time WorkerBook::Worker::seen_at(Time now) const {
  Time latest;
  for (const auto& claiming : claimings) latest = std::max(latest, claiming->waiting > 0 ? now : claiming->seen_at);
  return latest;
}

std::optional<Time> WorkerBook::Worker::due_at(Time now, Timer::Instant instant) const {
  if (!tried_at && instant < first_at) return now + std::chrono::ceil<Duration>(first_at - instant);
  if (!tried_at || *tried_at > now) return now;
  if (changed && !failed) return *tried_at + kTogether;
  const bool is_news = changed || !told || seen_at(now) > told->last_seen_at;
  return is_news ? std::optional(*tried_at + kTellEvery) : std::nullopt;
}

Reply<std::vector<Claimed>> WorkerBook::note(const ClaimCall& call, Reply<std::vector<Claimed>> reply) {
  const Time now = store_.now();
  const std::shared_ptr<Claiming> claiming = seen(call, now);
  if (!claiming || call.wait <= Duration(0)) return reply;
  return [this, claiming, reply = std::move(reply)](Answer<std::vector<Claimed>> answer) {
    {
      const std::lock_guard lock(mutex_);
      --claiming->waiting;
      claiming->seen_at = store_.now();
    }
    reply(std::move(answer));
  };
}

// Null: there are too many.
std::shared_ptr<WorkerBook::Claiming> WorkerBook::seen(const ClaimCall& call, Time now) {
  const Timer::Instant instant = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  const Key key{call.name_space, call.worker};
  auto worker = workers_.find(key);
  if (worker == workers_.end()) {
    if (workers_.size() >= kMostWorkers) return nullptr;
    worker = workers_.emplace(key, Worker()).first;
    worker->second.first_at = instant + kFirstAfter;
  }
  auto& claimings = worker->second.claimings;
  auto known = std::find_if(claimings.begin(), claimings.end(), [&](const auto& each) { return each->is_of(call); });
  if (known == claimings.end()) {
    std::erase_if(claimings, [&](const auto& each) { return each->is_over(now); });
    if (claimings.size() >= kMostClaimings) return nullptr;
    claimings.push_back(
        std::make_shared<Claiming>(Claiming{call.queues, call.types, call.tasks, call.workflows, now, 0}));
    known = std::prev(claimings.end());
    worker->second.changed = true;
  }
  if (worker->second.origin != call.origin) {
    worker->second.origin = call.origin;
    worker->second.changed = true;
  }
  (*known)->seen_at = now;
  if (call.wait > Duration(0)) ++(*known)->waiting;
  if (const auto due = worker->second.due_at(now, instant)) schedule(*due, now);
  return *known;
}

WorkerInfo WorkerBook::info_of(const Key& key, const Worker& worker, Time now) {
  std::set<std::string> queues, types;
  bool any_type = false;
  WorkerInfo info;
  info.name_space = key.first;
  info.name = key.second;
  info.origin = worker.origin;
  info.tasks = false;
  for (const auto& claiming : worker.claimings) {
    queues.insert(claiming->queues.begin(), claiming->queues.end());
    types.insert(claiming->types.begin(), claiming->types.end());
    any_type = any_type || claiming->types.empty();
    info.tasks = info.tasks || claiming->tasks;
    info.workflows = info.workflows || claiming->workflows;
  }
  info.queues.assign(queues.begin(), queues.end());
  if (!any_type) info.types.assign(types.begin(), types.end());
  info.last_seen_at = worker.seen_at(now);
  return info;
}

// With the lock held.
void WorkerBook::schedule(Time when, Time now) {
  const auto instant = std::chrono::steady_clock::now() + std::clamp(when - now, Duration(0), kTellEvery);
  if (next_ && (next_->first <= instant || !timer_.cancel(*next_))) return;
  next_ = timer_.at(instant, [this] { tell(std::chrono::steady_clock::now()); });
}

// Those that are due, at most kMostTold; forgets whoever has not claimed for long, and looks again when more are due.
std::vector<WorkerInfo> WorkerBook::take_due(Time now, Timer::Instant instant) {
  std::vector<WorkerInfo> due;
  std::optional<Time> next;
  const std::lock_guard lock(mutex_);
  next_.reset();
  for (auto at = workers_.begin(); at != workers_.end();) {
    auto& [key, worker] = *at;
    const std::size_t before = worker.claimings.size();
    const Time seen_at = worker.seen_at(now);
    if (worker.claimings.size() > 1) {
      std::erase_if(worker.claimings, [&](const auto& each) { return each->is_over(now) && each->seen_at < seen_at; });
      worker.changed = worker.changed || worker.claimings.size() < before;
    }
    auto due_at = worker.due_at(now, instant);
    if (!due_at && seen_at + kRemember <= now) {
      at = workers_.erase(at);
      continue;
    }
    if (due_at && *due_at <= now && due.size() < kMostTold) {
      due.push_back(info_of(key, worker, now));
      worker.tried_at = now;
      worker.changed = false;
      due_at = now + kTellEvery;
    }
    const Time look_at = due_at.value_or(seen_at + kRemember);
    if (!next || look_at < *next) next = look_at;
    ++at;
  }
  if (next) schedule(std::max(*next, now + (due.size() < kMostTold ? kTogether : Duration(0))), now);
  return due;
}

void WorkerBook::told(const std::vector<WorkerInfo>& workers, bool failed) {
  const std::lock_guard lock(mutex_);
  for (const WorkerInfo& info : workers) {
    const auto worker = workers_.find({info.name_space, info.name});
    if (worker == workers_.end()) continue;
    worker->second.failed = failed;
    if (failed) {
      worker->second.changed = true;
    } else {
      worker->second.told = info;
    }
  }
}

void WorkerBook::tell(Timer::Instant instant) {
  const std::vector<WorkerInfo> due = take_due(store_.now(), instant);
  if (due.empty()) return;
  try {
    store_.announce(due);
    told(due, false);
  } catch (const std::exception& failure) {
    told(due, true);
    spdlog::debug("announcing workers: {}", failure.what());
  }
}

}  // namespace hapax
