// Calls that have no answer yet, by their token. Tokens need not be unique. Safe to use from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hapax::capi {

template <class Call>
class PendingCalls {
 public:
  void add(std::uint64_t token, std::shared_ptr<Call> call) {
    const std::lock_guard lock(mutex_);
    calls_.emplace(token, std::move(call));
  }

  void remove(std::uint64_t token, const Call& call) {
    std::shared_ptr<Call> removed;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const auto [first, last] = calls_.equal_range(token);
    for (auto at = first; at != last; ++at) {
      if (at->second.get() != &call) continue;
      removed = std::move(at->second);
      calls_.erase(at);
      break;
    }
    if (calls_.empty()) emptied_.notify_all();
  }

  std::vector<std::shared_ptr<Call>> with_token(std::uint64_t token) {
    std::vector<std::shared_ptr<Call>> found;
    const std::lock_guard lock(mutex_);
    const auto [first, last] = calls_.equal_range(token);
    for (auto at = first; at != last; ++at) found.push_back(at->second);
    return found;
  }

  std::vector<std::shared_ptr<Call>> all() {
    std::vector<std::shared_ptr<Call>> found;
    const std::lock_guard lock(mutex_);
    for (const auto& [token, call] : calls_) found.push_back(call);
    return found;
  }

  void wait_until_empty() {
    std::unique_lock lock(mutex_);
    emptied_.wait(lock, [&] { return calls_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable emptied_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace hapax::capi
