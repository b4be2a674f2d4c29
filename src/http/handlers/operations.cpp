// Health, readiness, metrics, the API's description, a front page.
#include <spdlog/spdlog.h>

#include "core/failure.h"
#include "core/json_writer.h"
#include "engine/unclaimed.h"
#include "http/openapi.h"
#include "http/service.h"

namespace hapax::http {

namespace {

constexpr std::string_view kFrontPage = R"(<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Hapax</title></head>
<body>
<h1>Hapax</h1>
<p>A durable task queue: say it twice, it happens once.</p>
<ul>
<li><a href="/openapi.json">The API</a></li>
<li><a href="/health">Health</a></li>
<li><a href="/ready">Readiness</a></li>
<li><a href="/metrics">Metrics</a></li>
</ul>
</body>
</html>
)";

constexpr std::chrono::milliseconds kQueueCountsTime{3000};  // then the metrics come without them

Response status_response(std::string_view status) {
  JsonWriter out;
  out.begin_object().key("status").string(status).key("version").string(kVersion).end_object();
  return json_response(200, out.take());
}

Response text_response(std::string_view body, std::string_view content_type) {
  Response response;
  response.body = std::string(body);
  response.content_type = content_type;
  return response;
}

// Of one namespace, or of all. Nothing while the store fails: that is when the other metrics are needed most.
std::optional<std::vector<QueueCount>> queue_counts(Engine& engine, const std::optional<std::string>& name_space) {
  try {
    std::vector<QueueCount> counts = engine.queue_counts();
    if (name_space) std::erase_if(counts, [&](const QueueCount& count) { return count.name_space != *name_space; });
    // A queue that was used once and is empty has no series.
    std::erase_if(counts, [](const QueueCount& count) { return count.pending == 0 && count.running == 0; });
    return counts;
  } catch (const Failure& failure) {
    spdlog::warn("http: metrics without the queues: {}", failure.what());
    return {};
  }
}

std::set<std::pair<std::string, std::string>> unclaimed_among(Engine& engine,
                                                              const std::optional<std::vector<QueueCount>>& counts) {
  try {
    if (counts) return unclaimed_queues(engine, *counts, SystemClock().now());
  } catch (const Failure& failure) {
    spdlog::warn("http: metrics without the workers: {}", failure.what());
  }
  return {};
}

Response metrics_response(Backend& backend, const std::optional<std::vector<QueueCount>>& queues) {
  return text_response(
      backend.metrics->render(backend.engine.counters(), queues, unclaimed_among(backend.engine, queues)),
      "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace

void add_operation_routes(Router& router, Backend& backend) {
  router.add(
      Method::get, "/health", [](Request&, const Responder& responder) { responder.answer(status_response("ok")); },
      Access::open);
  router.add(
      Method::get, "/ready",
      [&backend](Request&, const Responder& responder) { backend.ready.ask(responder, status_response("ready")); },
      Access::open);
  router.add(Method::get, "/metrics", [&backend](Request& request, const Responder& responder) {
    const auto only = request.bound ? std::optional(request.name_space) : std::nullopt;
    responder.limit(kQueueCountsTime, [&backend] { return metrics_response(backend, {}); });
    backend.pool.answer(responder,
                        [&backend, only] { return metrics_response(backend, queue_counts(backend.engine, only)); });
  });
  router.add(
      Method::get, "/openapi.json",
      [](Request&, const Responder& responder) { responder.answer(text_response(kOpenApi, kJsonType)); }, Access::open);
  router.add(
      Method::get, "/",
      [](Request&, const Responder& responder) {
        responder.answer(text_response(kFrontPage, "text/html; charset=utf-8"));
      },
      Access::open);
}

}  // namespace hapax::http
