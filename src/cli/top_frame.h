// Draws what `hapax top` shows, for a terminal or a pipe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/paint.h"
#include "engine/engine.h"
#include "engine/unclaimed.h"

namespace hapax {

// One snapshot of the target.
struct TopSample {
  Time at;
  std::vector<QueueView> queues;
  std::vector<Execution> running;   // some of them
  std::vector<Execution> failures;  // the latest
  std::vector<Unclaimed> unclaimed;
  std::optional<EngineCounters> counters;  // of a server, since it started
};

struct TopFrame {
  std::string url, name_space;
  std::size_t width = 100;
  std::size_t height = 40;  // no more lines than this
};

// `before` is the snapshot that rates are counted from; absent: no rates.
std::string draw_top(const TopFrame& frame, const TopSample& now, const std::optional<TopSample>& before,
                     const Paint& paint);

}  // namespace hapax
