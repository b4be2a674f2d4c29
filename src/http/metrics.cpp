#include "http/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "http/openapi.h"

namespace hapax::http {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kBuckets{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                       0.25,   0.5,   1,      2.5,   5,    10,    30,   60};

MetricFamily family(std::string name, std::string help, MetricType type) {
  return {std::move(name), std::move(help), type, {}};
}

ClientMetric value(MetricType type, double number, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = number;
  return metric;
}

MetricFamily single(std::string name, std::string help, MetricType type, double number) {
  MetricFamily one = family(std::move(name), std::move(help), type);
  one.metric.push_back(value(type, number));
  return one;
}

void add_engine(std::vector<MetricFamily>& out, const EngineCounters& c) {
  const auto counter = [&](std::string name, std::string help, std::int64_t number) {
    out.push_back(single(std::move(name), std::move(help), MetricType::Counter, static_cast<double>(number)));
  };
  const auto gauge = [&](std::string name, std::string help, std::int64_t number) {
    out.push_back(single(std::move(name), std::move(help), MetricType::Gauge, static_cast<double>(number)));
  };
  counter("hapax_submitted_total", "Executions created", c.submitted);
  counter("hapax_deduplicated_total", "Submissions that found an existing execution", c.deduplicated);
  counter("hapax_conflicts_total", "Submissions whose key stood for another input", c.conflicts);
  counter("hapax_claimed_total", "Attempts handed to workers", c.claimed);
  counter("hapax_completed_total", "Executions completed", c.completed);
  counter("hapax_failed_attempts_total", "Attempts reported as failed", c.failed_attempts);
  counter("hapax_leases_lost_total", "Reports and heartbeats under a stale lease", c.leases_lost);
  counter("hapax_swept_total", "Executions ended or returned because something became due", c.swept);
  counter("hapax_purged_total", "Executions deleted after their retention", c.purged);
  counter("hapax_commits_total", "Commits to the store", c.commits);
  counter("hapax_store_failures_total", "Store calls that failed", c.store_failures);
  gauge("hapax_waiting_claims", "Claims that wait for work", c.waiting_claims);
  gauge("hapax_waiting_results", "Requests that wait for a result", c.waiting_results);
}

void add_queues(std::vector<MetricFamily>& out, const std::vector<QueueCount>& queues,
                const std::set<std::pair<std::string, std::string>>& unclaimed) {
  MetricFamily pending = family("hapax_queue_pending", "Pending tasks, including delayed ones", MetricType::Gauge);
  MetricFamily running = family("hapax_queue_running", "Running tasks", MetricType::Gauge);
  MetricFamily nobody =
      family("hapax_queue_unclaimed",
             "1: something has waited for a minute, and nobody has claimed the queue for as long", MetricType::Gauge);
  for (const QueueCount& queue : queues) {
    const std::vector<ClientMetric::Label> labels{{"namespace", queue.name_space}, {"queue", queue.queue}};
    nobody.metric.push_back(
        value(MetricType::Gauge, unclaimed.contains({queue.name_space, queue.queue}) ? 1 : 0, labels));
    pending.metric.push_back(value(MetricType::Gauge, static_cast<double>(queue.pending), labels));
    running.metric.push_back(value(MetricType::Gauge, static_cast<double>(queue.running), labels));
  }
  out.push_back(std::move(pending));
  out.push_back(std::move(running));
  out.push_back(std::move(nobody));
}

}  // namespace

Metrics::PerRoute::PerRoute(std::string method_name, std::string path)
    : method(std::move(method_name)), pattern(std::move(path)), latency(kBuckets) {}

Metrics::Metrics(const std::vector<Route>& routes, const Load& load)
    : load_(load),
      started_at_s_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()) {
  for (const Route& route : routes) {
    routes_.push_back(std::make_unique<PerRoute>(std::string(to_string(route.method)), route.pattern));
  }
  routes_.push_back(std::make_unique<PerRoute>("", "unmatched"));
}

void Metrics::observe(std::size_t route, int status, std::chrono::steady_clock::duration took) {
  PerRoute& counted = route < routes_.size() ? *routes_[route] : *routes_.back();
  counted.by_class[static_cast<std::size_t>(status / 100) % 6].Increment();
  counted.latency.Observe(std::chrono::duration<double>(took).count());
}

std::vector<QueueCount> Metrics::with_bounded_names(const std::vector<QueueCount>& queues) {
  const std::lock_guard lock(mutex_);
  std::vector<QueueCount> out;
  QueueCount others;
  bool has_others = false;
  for (const QueueCount& queue : queues) {
    std::pair name(queue.name_space, queue.queue);
    if (told_.contains(name) || (told_.size() < kMaxQueues && told_.insert(std::move(name)).second)) {
      out.push_back(queue);
      continue;
    }
    has_others = true;
    others.pending += queue.pending;
    others.running += queue.running;
  }
  if (has_others) out.push_back(std::move(others));
  return out;
}

std::string Metrics::render(const EngineCounters& counters, const std::optional<std::vector<QueueCount>>& queues,
                            const std::set<std::pair<std::string, std::string>>& unclaimed) {
  MetricFamily requests = family("hapax_http_requests_total", "Requests answered", MetricType::Counter);
  MetricFamily latency =
      family("hapax_http_request_duration_seconds", "From the complete request to its answer", MetricType::Histogram);
  for (const auto& route : routes_) {
    const std::vector<ClientMetric::Label> labels{{"method", route->method}, {"route", route->pattern}};
    bool used = false;
    for (std::size_t i = 1; i < route->by_class.size(); ++i) {
      const double count = route->by_class[i].Value();
      if (count == 0) continue;
      used = true;
      auto with_class = labels;
      with_class.push_back({"status", std::to_string(i) + "xx"});
      requests.metric.push_back(value(MetricType::Counter, count, with_class));
    }
    if (!used) continue;
    ClientMetric histogram = route->latency.Collect();
    histogram.label = labels;
    latency.metric.push_back(std::move(histogram));
  }
  std::vector<MetricFamily> out{std::move(requests), std::move(latency)};
  out.push_back(single("hapax_http_connections", "Open connections", MetricType::Gauge,
                       static_cast<double>(load_.connections())));
  out.push_back(single("hapax_http_requests_in_hand", "Requests being handled, without waiting ones", MetricType::Gauge,
                       static_cast<double>(load_.requests())));
  out.push_back(single("hapax_http_request_bytes_in_hand", "Bytes of the bodies of those, and of those being read",
                       MetricType::Gauge, static_cast<double>(load_.bytes())));
  add_engine(out, counters);
  out.push_back(single("hapax_stuck_turns_total", "Turns of workflows that their workers reported as stuck",
                       MetricType::Counter, stuck_turns_.Value()));
  if (queues) add_queues(out, with_bounded_names(*queues), unclaimed);
  out.push_back(single("process_start_time_seconds", "When the server started, since the epoch", MetricType::Gauge,
                       started_at_s_));
  MetricFamily build = family("hapax_build_info", "The version of the server", MetricType::Gauge);
  build.metric.push_back(value(MetricType::Gauge, 1, {{"version", std::string(kVersion)}}));
  out.push_back(std::move(build));
  return prometheus::TextSerializer().Serialize(out);
}

}  // namespace hapax::http
