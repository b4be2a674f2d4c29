#include "engine/unclaimed_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace hapax {

namespace {

// The sentence that says so; nothing if somebody claims it, or may be too busy to: something of the queue runs.
std::optional<std::string> nobody_claims(const Why& why) {
  for (std::size_t i = 0; i < why.because.size(); ++i) {
    const std::string& because = why.because[i];
    const bool is_code =
        because.starts_with(R"({"code":"no_worker")") || because.starts_with(R"({"code":"no_workflow_worker")");
    if (is_code && because.ends_with(R"("running":0})")) return why.sentences.at(i);
  }
  return std::nullopt;
}

}  // namespace

void UnclaimedWatch::submitted(const Execution& created) {
  if (created.status != Status::pending) return;
  const std::lock_guard lock(mutex_);
  Key key{created.name_space, created.queue, created.type, created.kind};
  if (watched_.contains(key) || watched_.size() >= kMostWatched) return;
  watched_.emplace(std::move(key), Watched{created.id, created.run_at + kLookEvery});
  schedule();
}

// With the lock held.
void UnclaimedWatch::schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  timer_.after(kLookEvery, [this] {
    {
      const std::lock_guard lock(mutex_);
      scheduled_ = false;
    }
    look();
  });
}

std::vector<std::pair<UnclaimedWatch::Key, UnclaimedWatch::Watched>> UnclaimedWatch::due(Time now) {
  std::vector<std::pair<Key, Watched>> due;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, watched] : watched_) {
    if (watched.look_at <= now && due.size() < kMostLooks) due.emplace_back(key, watched);
  }
  if (!watched_.empty()) schedule();
  return due;
}

bool UnclaimedWatch::look_at(const Key& key, Watched& watched) {
  const auto& [name_space, queue, type, kind] = key;
  const auto why = store_.why(name_space, watched.id);
  if (!why || why->state != to_string(Status::pending)) return false;
  const auto nobody = nobody_claims(*why);
  if (nobody && !watched.told) {
    spdlog::warn("namespace {}: {} Start a worker that has it; `hapax why {}` says more.", name_space, *nobody,
                 watched.id.to_string());
  }
  watched.told = nobody.has_value();
  return true;
}

void UnclaimedWatch::look() {
  const Time now = store_.now();
  for (auto& [key, watched] : due(now)) {
    bool is_pending = false;
    try {
      is_pending = look_at(key, watched);
    } catch (const std::exception& failure) {  // the next submission of the type is watched
      spdlog::debug("looking for types that nobody claims: {}", failure.what());
    }
    const std::lock_guard lock(mutex_);
    const auto known = watched_.find(key);
    if (known == watched_.end()) continue;
    if (is_pending) {
      watched.look_at = now + kLookEvery;
      known->second = watched;
    } else {
      watched_.erase(known);
    }
  }
}

}  // namespace hapax
