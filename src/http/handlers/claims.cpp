// Workers: claim, heartbeat, give back, finish.
#include "http/answer.h"
#include "http/parse_request.h"
#include "http/service.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

Response claim_response(const std::vector<Claimed>& claimed) {
  JsonWriter out;
  out.begin_object().key("claims").begin_array();
  for (const Claimed& each : claimed) wire::write_claim(out, each);
  out.end_array().end_object();
  return json_response(200, out.take());
}

void claim(Backend& backend, Request& request, const Responder& responder) {
  ClaimCall call = wire::read_claim_call(parse_body(request), request.name_space);
  const bool waits = call.wait > Duration::zero();
  auto waiting = backend.engine.claim(std::move(call), responder.reply<std::vector<Claimed>>(claim_response));
  if (waits && waiting) responder.wait(std::move(waiting));
}

Response heartbeat_response(const Leases& leases, const std::vector<ExtendOutcome>& outcomes) {
  JsonWriter out;
  out.begin_object().key("leases").begin_array();
  std::size_t next = 0;
  for (std::size_t i = 0; i < leases.texts.size(); ++i) {
    const ExtendOutcome outcome = leases.known[i] ? outcomes.at(next++) : ExtendOutcome{};
    out.begin_object().key("lease").string(leases.texts[i]).key("ok").boolean(outcome.ok);
    out.key("cancel_requested").boolean(outcome.cancel_requested);
    if (outcome.lease_expires_at) out.key("lease_expires_at").string(format_time(*outcome.lease_expires_at));
    out.end_object();
  }
  out.end_array().end_object();
  return json_response(200, out.take());
}

void extend(Backend& backend, const Request& request, const Responder& responder, std::vector<std::string> texts,
            Duration lease) {
  std::vector<Extension> extensions;
  Leases leases{std::move(texts), {}};
  for (const std::string& text : leases.texts) {
    const auto token = LeaseToken::parse(text);
    leases.known.push_back(token.has_value());
    if (token) extensions.push_back({*token, lease, request.name_space});
  }
  if (extensions.empty()) return responder.answer(heartbeat_response(leases, {}));
  backend.engine.heartbeat(std::move(extensions),
                           responder.reply<std::vector<ExtendOutcome>>(
                               [leases = std::move(leases)](const std::vector<ExtendOutcome>& outcomes) {
                                 return heartbeat_response(leases, outcomes);
                               }));
}

void heartbeat(Backend& backend, Request& request, const Responder& responder) {
  wire::Heartbeat beat = wire::read_heartbeat(parse_body(request));
  extend(backend, request, responder, std::move(beat.leases), beat.lease);
}

// A lease of no length gives the task back.
void give_back(Backend& backend, Request& request, const Responder& responder) {
  extend(backend, request, responder, wire::read_return(parse_body(request)), Duration(0));
}

Response finish_response(const Leases& leases, const std::vector<FinishOutcome>& outcomes) {
  return leases_response("outcomes", leases, outcomes, [](JsonWriter&, const std::string&, const FinishOutcome&) {});
}

void finish(Backend& backend, Request& request, const Responder& responder) {
  std::vector<wire::FinishItem> items = wire::read_finish(parse_body(request));
  std::vector<Report> reports;
  Leases leases;
  for (wire::FinishItem& item : items) {
    const auto token = LeaseToken::parse(item.lease);
    leases.known.push_back(token.has_value());
    leases.texts.push_back(std::move(item.lease));
    if (token) reports.push_back({*token, std::move(item.outcome), request.name_space});
  }
  if (reports.empty()) return responder.answer(finish_response(leases, {}));
  backend.engine.finish(std::move(reports),
                        responder.reply<std::vector<FinishOutcome>>(
                            [leases = std::move(leases)](const std::vector<FinishOutcome>& outcomes) {
                              return finish_response(leases, outcomes);
                            }));
}

}  // namespace

void add_claim_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/claims", on(backend, claim));
  router.add(Method::post, "/v1/claims/heartbeat", on(backend, heartbeat));
  router.add(Method::post, "/v1/claims/return", on(backend, give_back));
  router.add(Method::post, "/v1/claims/finish", on(backend, finish));
}

}  // namespace hapax::http
