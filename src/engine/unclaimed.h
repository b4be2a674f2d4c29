// What waits and is claimed by nobody, for people who look: hapax top, hapax doctor, hapax list --stuck, /metrics.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace hapax {

// Something has waited for a minute, and for as long nobody has claimed its type in its queue; nobody there is busy.
struct Unclaimed {
  std::string queue, type;
  Kind kind = Kind::task;
  ExecutionId example;
  Time run_at;  // of that one
};

// Reads more than the queues only if something has waited for a minute in one that is not paused. Of those queues the
// first kMostQueues are looked at, and of each the newest kMostLookedAt that are pending.
inline constexpr std::size_t kMostUnclaimedQueues = 20;
inline constexpr std::int32_t kMostLookedAt = 100;
std::vector<Unclaimed> find_unclaimed(Engine& engine, const std::string& name_space,
                                      const std::vector<QueueView>& queues, Time now);

// The queues among these, by namespace and name, in which something has waited for a minute and which nobody has
// claimed for a minute. Paused ones count as well.
std::set<std::pair<std::string, std::string>> unclaimed_queues(Engine& engine, std::span<const QueueCount> counts,
                                                               Time now);

}  // namespace hapax
