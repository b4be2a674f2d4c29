// The locations of the rows that this process has claimed, so that finishing skips the index.
//
// A location may be wrong: a row that was changed since, by a heartbeat, say, is elsewhere, and is then looked up by
// its id.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "store/postgres/tables/rows.h"

namespace hapax::postgres {

class RowLocations {
 public:
  void put(const ExecutionId& id, const RowLocation& location) {
    const std::lock_guard lock(mutex_);
    if (locations_.size() >= kMost) locations_.clear();
    locations_.insert_or_assign(id, location);
  }

  // It is used once.
  std::optional<RowLocation> take(const ExecutionId& id) {
    const std::lock_guard lock(mutex_);
    const auto found = locations_.find(id);
    if (found == locations_.end()) return std::nullopt;
    const RowLocation location = found->second;
    locations_.erase(found);
    return location;
  }

 private:
  static constexpr std::size_t kMost = 10'000;

  std::mutex mutex_;
  std::unordered_map<ExecutionId, RowLocation> locations_;
};

}  // namespace hapax::postgres
