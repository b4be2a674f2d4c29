// Workers as they show themselves with their claims.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/time.h"

namespace hapax {

// Where a worker runs, and on what library; empty what it did not say.
struct WorkerOrigin {
  std::string sdk, version;
  std::string host;
  std::int64_t pid = 0;

  bool operator==(const WorkerOrigin&) const = default;
};

struct WorkerInfo {
  std::string name_space, name;
  WorkerOrigin origin;
  std::vector<std::string> queues;  // that it claims from
  std::vector<std::string> types;   // that it claims; empty: any
  bool tasks = true;
  bool workflows = false;
  Time last_seen_at;
  std::int64_t running = 0;  // that it holds now; as read, not kept

  bool operator==(const WorkerInfo&) const = default;
};

}  // namespace hapax
