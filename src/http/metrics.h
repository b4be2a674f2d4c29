// What /metrics tells, in Prometheus' text format.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "engine/engine.h"
#include "http/router.h"

namespace hapax::http {

class Metrics {
 public:
  // Routes that come later are not counted.
  explicit Metrics(const std::vector<Route>& routes);

  // `route` is an index into the routes; kNoRoute for what matched none.
  static constexpr std::size_t kNoRoute = static_cast<std::size_t>(-1);
  void observe(std::size_t route, int status, std::chrono::steady_clock::duration took);

  void connection_opened() { connections_.fetch_add(1, std::memory_order_relaxed); }
  void connection_closed() { connections_.fetch_sub(1, std::memory_order_relaxed); }

  // Without `queues`, which are the store's to tell, the rest is told.
  std::string render(const EngineCounters& counters, const std::optional<std::vector<QueueCount>>& queues) const;

 private:
  struct PerRoute {
    PerRoute(std::string method, std::string pattern);

    std::string method, pattern;
    std::array<prometheus::Counter, 6> by_class;  // of status/100
    prometheus::Histogram latency;
  };

  std::vector<std::unique_ptr<PerRoute>> routes_;  // the last one is for what matched no route
  std::atomic<std::int64_t> connections_{0};
  double started_at_s_;
};

}  // namespace hapax::http
