// A store under full load for a while: submits keyed tasks in batches as fast as a worker process drains them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hapax::bench {

struct SoakOptions {
  std::string url;
  std::chrono::seconds duration{30};
  int threads = 2;         // of the worker
  std::int64_t first = 0;  // number of the first task: a second soak starts where the first one ended
};

struct SoakFigure {
  std::int64_t count = 0;                // tasks submitted, run once each, and closed
  std::vector<double> tasks_per_second;  // of every second
};

// Throws if a task was lost, ran twice, or is still open at the end.
SoakFigure soak(const SoakOptions& options);

}  // namespace hapax::bench
