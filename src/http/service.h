// The way of a request through the server, apart from the network: route, admission, handler.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "engine/engine.h"
#include "http/auth.h"
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

  // Who may come in from now on. Throws std::invalid_argument, and changes nothing then.
  void change_access(const std::vector<AccessToken>& tokens, const std::vector<std::string>& hosts);

  // At the end of the head: the route, its index among the routes as soon as it is known, and in the request what its
  // handler needs but for the body. Throws what error_response() answers.
  const Route& admit(Request& request, std::size_t& index) const;

  // Has the request answered through the responder, now or later. Does not throw.
  void run(const Route& route, Request& request, const Responder& responder) const;

  // Does `work` on another thread than the connections', one after the other: what has a long body to parse, which
  // takes time and many times its memory. Does not throw; what `work` throws is answered.
  void run_elsewhere(const Responder& responder, std::function<void()> work);

  // For answers that take long to compress.
  ReadPool& compressing() { return compressing_; }

  // Ends the threads after what was asked for.
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
  const Route options_;  // of every path that has no OPTIONS of its own
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
