#include "http/service.h"

#include <algorithm>

#include "core/name.h"
#include "http/compression.h"
#include "http/error.h"
#include "wire/header.h"

namespace hapax::http {

namespace {

constexpr std::chrono::hours kNoHurry{1};  // the answer to compress was already in time

void answer_options(Request& request, const Responder& responder) {
  Response response = json_response(kNoContent, "");
  response.headers.emplace_back("Allow", request.allow);
  responder.answer(std::move(response));
}

std::string parse_key_header(const Request& request, const Route& route) {
  if (route.key_header == KeyHeader::refused) {
    throw invalid_header("Idempotency-Key",
                         "has no meaning for this operation; leave it out. It is for submitting one task or starting "
                         "one workflow (in a batch each task has its own \"idempotency_key\"), and for cancel, retry, "
                         "resume, fork, signal and trigger");
  }
  auto key = wire::read_key_header(request.key_header);
  if (!key) {
    throw invalid_idempotency_key(
        "begins with a quote but is not a quoted string, in which \\\" and \\\\ stand for \" and \\");
  }
  if (!is_valid_utf8(*key)) throw invalid_idempotency_key("must be UTF-8");
  return *std::move(key);
}

}  // namespace

Service::Service(Engine& engine, const ServerOptions& options)
    : max_body_bytes_(options.max_body_bytes),
      options_{Method::options, "", answer_options, Access::token, KeyHeader::refused, {}},
      load_(options.max_requests, std::max(options.max_request_bytes, options.max_body_bytes)),
      pool_(options.read_threads, options.store_timeout),
      bodies_(1, options.store_timeout),
      compressing_(1, kNoHurry),
      ready_(engine),
      backend_{engine, pool_, ready_} {
  change_access(options.tokens, options.hosts);
  add_batch_routes(router_, backend_);
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
  metrics_ = std::make_unique<Metrics>(router_.routes(), load_);
  backend_.metrics = metrics_.get();
}

void Service::change_access(const std::vector<AccessToken>& tokens, const std::vector<std::string>& hosts) {
  const bool any = hosts.empty() && !tokens.empty();
  door_ = std::make_shared<const Door>(Door{Auth(tokens), any ? std::nullopt : std::make_optional<Hosts>(hosts)});
}

const Route& Service::admit(Request& request, std::size_t& index) const {
  const Router::Match match = router_.find(request.method, request.path);
  if (match.route != nullptr) index = router_.index_of(*match.route);
  const std::shared_ptr<const Door> door = door_;
  if (door->hosts && request.host.data() != nullptr && !door->hosts->accept(request.host)) {
    throw RequestError(
        421, "ForeignHost",
        "This server does not answer to the host in this request. If it should, name it in [server] hosts.");
  }
  if (match.access == Access::token) {
    Auth::Admission admission = door->auth.admit(request);
    request.name_space = std::move(admission.name_space);
    request.bound = admission.bound;
  }
  if (match.route == nullptr && !match.allow.empty() && request.method == Method::options) {
    request.allow = match.allow;
    return options_;
  }
  if (match.route == nullptr && !match.allow.empty()) {
    throw RequestError(405, "MethodNotAllowed", "This path does not have that method; it has " + match.allow + ".")
        .with_header("Allow", match.allow);
  }
  if (match.route == nullptr) {
    throw RequestError(404, "RouteNotFound", "There is no route at this path. /openapi.json lists all routes.");
  }
  for (const std::string_view param : match.params) {
    auto decoded = percent_decode(param);
    if (!decoded) throw RequestError(400, "InvalidRequest", "The path must be percent-encoded UTF-8.");
    request.params.push_back(*std::move(decoded));
  }
  if (request.key_header.data() != nullptr) request.idempotency_key = parse_key_header(request, *match.route);
  return *match.route;
}

void Service::run(const Route& route, Request& request, const Responder& responder) const {
  try {
    request.body = decode_body(std::move(request.body), request.content_encoding, max_body_bytes_);
    if (!responder.take_bytes(request.body.size())) throw too_many_bytes();
    route.handler(request, responder);
  } catch (...) {
    responder.answer(error_response(std::current_exception()));
  }
}

void Service::run_elsewhere(const Responder& responder, std::function<void()> work) {
  try {
    bodies_.begin(responder, std::move(work));
  } catch (...) {
    responder.answer(error_response(std::current_exception()));
  }
}

void Service::stop() {
  bodies_.stop();
  compressing_.stop();
  pool_.stop();
  ready_.stop();
}

}  // namespace hapax::http
