#include "http/service.h"

#include "core/name.h"
#include "http/error.h"

namespace hapax::http {

Service::Service(Engine& engine, const ServerOptions& options)
    : auth_(options.tokens), pool_(options.read_threads), backend_{engine, pool_} {
  add_task_routes(router_, backend_);
  add_workflow_routes(router_, backend_);
  add_claim_routes(router_, backend_);
  add_turn_routes(router_, backend_);
  add_queue_routes(router_, backend_);
  add_type_routes(router_, backend_);
  add_activity_routes(router_, backend_);
  add_event_routes(router_, backend_);
  add_identity_routes(router_, backend_);
  add_operation_routes(router_, backend_);
  metrics_ = std::make_unique<Metrics>(router_.routes());
  backend_.metrics = metrics_.get();
}

std::size_t Service::handle(Request& request, const Responder& responder) {
  const Router::Match match = router_.find(request.method, request.path);
  try {
    admit_and_run(request, responder, match);
  } catch (...) {
    responder.answer(error_response(std::current_exception()));
  }
  return match.route == nullptr ? Metrics::kNoRoute : router_.index_of(*match.route);
}

void Service::admit_and_run(Request& request, const Responder& responder, const Router::Match& match) {
  if (match.route == nullptr || match.route->access == Access::token) {
    Auth::Admission admission = auth_.admit(request);
    request.name_space = std::move(admission.name_space);
    request.bound = admission.bound;
  }
  if (match.route == nullptr && !match.allow.empty()) {
    throw RequestError(405, "MethodNotAllowed", "This path does not have that method, but " + match.allow + ".")
        .with_header("Allow", match.allow);
  }
  if (match.route == nullptr) {
    throw RequestError(404, "RouteNotFound", "There is nothing at this path. /openapi.json lists what there is.");
  }
  for (const std::string_view param : match.params) {
    auto decoded = percent_decode(param);
    if (!decoded) throw RequestError(400, "InvalidRequest", "The path must be percent-encoded UTF-8.");
    request.params.push_back(*std::move(decoded));
  }
  match.route->handler(request, responder);
}

}  // namespace hapax::http
