// /metrics, in Prometheus' text format.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "engine/engine.h"
#include "http/load.h"
#include "http/router.h"

namespace hapax::http {

class Metrics {
 public:
  // Routes added later are not counted.
  Metrics(const std::vector<Route>& routes, const Load& load);

  // `route` is an index into the routes; kNoRoute for a request that matched none.
  static constexpr std::size_t kNoRoute = static_cast<std::size_t>(-1);
  void count_stuck_turn() { stuck_turns_.Increment(); }  // that a worker could not take
  void observe(std::size_t route, int status, std::chrono::steady_clock::duration took);

  // Without `queues`, which come from the store, the rest is written. The first kMaxQueues queues have their own
  // series; all later ones share the queue "" of the namespace "", so clients cannot create unlimited series.
  static constexpr std::size_t kMaxQueues = 1000;
  // `unclaimed` are those of the queues, by namespace and name, that nobody claims.
  std::string render(const EngineCounters& counters, const std::optional<std::vector<QueueCount>>& queues,
                     const std::set<std::pair<std::string, std::string>>& unclaimed = {});

 private:
  struct PerRoute {
    PerRoute(std::string method, std::string pattern);

    std::string method, pattern;
    std::array<prometheus::Counter, 6> by_class;  // of status/100
    prometheus::Histogram latency;
  };

  std::vector<QueueCount> with_bounded_names(const std::vector<QueueCount>& queues);

  const Load& load_;
  std::vector<std::unique_ptr<PerRoute>> routes_;  // the last one is for requests that matched no route
  std::mutex mutex_;
  std::set<std::pair<std::string, std::string>> told_;  // namespace and queue
  prometheus::Counter stuck_turns_;
  double started_at_s_;
};

}  // namespace hapax::http
