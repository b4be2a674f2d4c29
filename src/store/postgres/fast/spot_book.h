// The locations of the rows that this process has claimed, so that finishing skips the index.
//
// A location may be wrong: a row that was changed since, by a heartbeat, say, is elsewhere, and is then looked up by
// its id.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "store/postgres/rows.h"

namespace hapax::postgres {

class SpotBook {
 public:
  void put(const ExecutionId& id, const Spot& spot) {
    const std::lock_guard lock(mutex_);
    if (spots_.size() >= kMost) spots_.clear();
    spots_.insert_or_assign(id, spot);
  }

  // It is used once.
  std::optional<Spot> take(const ExecutionId& id) {
    const std::lock_guard lock(mutex_);
    const auto found = spots_.find(id);
    if (found == spots_.end()) return std::nullopt;
    const Spot spot = found->second;
    spots_.erase(found);
    return spot;
  }

 private:
  static constexpr std::size_t kMost = 10'000;

  std::mutex mutex_;
  std::unordered_map<ExecutionId, Spot> spots_;
};

}  // namespace hapax::postgres
