// The way of a request through the server, apart from the network: route, admission, handler.
#pragma once

#include "engine/engine.h"
#include "http/auth.h"
#include "http/message.h"
#include "http/metrics.h"
#include "http/read_pool.h"
#include "http/router.h"
#include "http/server.h"

namespace hapax::http {

// What handlers work with.
struct Backend {
  Engine& engine;
  ReadPool& pool;
  const Metrics* metrics = nullptr;  // set before the first request
};

// A handler that works with the backend.
inline Handler on(Backend& backend, void (*handler)(Backend&, Request&, const Responder&)) {
  return [&backend, handler](Request& request, const Responder& responder) { handler(backend, request, responder); };
}

// One per group of routes, in handlers/.
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

  // Has the request answered through the responder, now or later. Does not throw. Returns the route's index, or
  // Metrics::kNoRoute.
  std::size_t handle(Request& request, const Responder& responder);

  // Ends the pool after the reads that were asked for.
  void stop() { pool_.stop(); }

  const Router& router() const { return router_; }
  Metrics& metrics() { return *metrics_; }

 private:
  void admit_and_run(Request& request, const Responder& responder, const Router::Match& match);

  Auth auth_;
  ReadPool pool_;
  Backend backend_;
  Router router_;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace hapax::http
