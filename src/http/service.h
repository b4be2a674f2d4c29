// A request's way through the server, without the network: route, admission, handler.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "engine/engine.h"
#include "http/auth.h"
#include "http/claimed_runs.h"
#include "http/hosts.h"
#include "http/load.h"
#include "http/message.h"
#include "http/metrics.h"
#include "http/read_pool.h"
#include "http/ready_probe.h"
#include "http/router.h"
#include "http/server.h"

namespace hapax::http {

// What handlers work with.
struct Backend {
  Engine& engine;
  ReadPool& pool;
  ReadyProbe& ready;
  Metrics* metrics = nullptr;  // set before the first request
  ClaimedRuns claimed_runs = {};
};

// A handler that uses the backend.
inline Handler on(Backend& backend, void (*handler)(Backend&, Request&, const Responder&)) {
  return [&backend, handler](Request& request, const Responder& responder) { handler(backend, request, responder); };
}

// One per group of routes, in handlers/.
void add_batch_routes(Router& router, Backend& backend);
void add_task_routes(Router& router, Backend& backend);
void add_workflow_routes(Router& router, Backend& backend);
void add_claim_routes(Router& router, Backend& backend);
void add_turn_routes(Router& router, Backend& backend);
void add_queue_routes(Router& router, Backend& backend);
void add_type_routes(Router& router, Backend& backend);
void add_activity_routes(Router& router, Backend& backend);
void add_event_routes(Router& router, Backend& backend);
void add_identity_routes(Router& router, Backend& backend);
void add_operation_routes(Router& router, Backend& backend);

class Service {
 public:
  Service(Engine& engine, const ServerOptions& options);

  // Replaces the access rules. Throws std::invalid_argument, and changes nothing then.
  void change_access(const std::vector<AccessToken>& tokens, const std::vector<std::string>& hosts);

  // At the end of the head: finds the route, sets its index as soon as it is known, and fills in everything but the
  // body that the handler needs. Throws what error_response() answers.
  const Route& admit(Request& request, std::size_t& index) const;

  // Answers the request through the responder, now or later. Does not throw.
  void run(const Route& route, Request& request, const Responder& responder) const;

  // Runs `work` on a separate thread, one after the other: parsing a long body takes time and many times its memory.
  // Does not throw; what `work` throws is answered.
  void run_elsewhere(const Responder& responder, std::function<void()> work);

  // For answers that take long to compress.
  ReadPool& compressing() { return compressing_; }

  // Finishes earlier work, then ends the threads.
  void stop();

  const Router& router() const { return router_; }
  Metrics& metrics() { return *metrics_; }
  Load& load() { return load_; }

 private:
  struct Door {
    Auth auth;
    std::optional<Hosts> hosts;  // absent: any
  };

  const std::size_t max_body_bytes_;
  const Route options_;  // for every path without its own OPTIONS
  std::atomic<std::shared_ptr<const Door>> door_;
  Load load_;
  ReadPool pool_;
  ReadPool bodies_;
  ReadPool compressing_;
  ReadyProbe ready_;
  Backend backend_;
  Router router_;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace hapax::http
