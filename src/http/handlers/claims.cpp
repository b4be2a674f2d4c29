// Workers: claim, heartbeat, give back, finish.
#include "http/answer.h"
#include "http/parse_request.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/read_request.h"
#include "wire/worker.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

void write_names(JsonWriter& out, const char* key, const std::vector<std::string>& names) {
  out.key(key).begin_array();
  for (const std::string& name : names) out.string(name);
  out.end_array();
}

// With turns comes what their worker may begin within them.
Response claim_response(Backend& backend, const std::string& name_space, const std::vector<std::string>& queues,
                        const std::vector<std::string>& types, const std::vector<Claimed>& claimed) {
  JsonWriter out;
  out.begin_object().key("claims").begin_array();
  bool any_turns = false;
  for (const Claimed& each : claimed) {
    wire::write_claim(out, each);
    if (each.execution.kind != Kind::workflow) continue;
    any_turns = true;
    backend.claimed_runs.keep(each.execution);
  }
  out.end_array();
  if (any_turns) {
    const StepsWithinTurns allowed = backend.engine.steps_within_turns(name_space, queues, types);
    out.key("within_turn").begin_object();
    write_names(out, "queues", allowed.queues);
    write_names(out, "except_types", allowed.except_types);
    out.end_object();
  }
  out.end_object();
  return json_response(200, out.take());
}

void claim(Backend& backend, Request& request, const Responder& responder) {
  ClaimCall call = wire::read_claim_call(parse_body(request), request.name_space);
  const bool waits = call.wait > Duration::zero();
  auto waiting = backend.engine.claim(
      std::move(call),
      responder.reply<std::vector<Claimed>>([&backend, name_space = request.name_space, queues = call.queues,
                                             types = call.types](const std::vector<Claimed>& claimed) {
        return claim_response(backend, name_space, queues, types, claimed);
      }));
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

void extend(Backend& backend, const Request& request, const Responder& responder, wire::Heartbeat heartbeat) {
  std::vector<Extension> extensions;
  Leases leases;
  for (wire::Heartbeat::Beat& beat : heartbeat.leases) {
    const auto token = LeaseToken::parse(beat.lease);
    leases.known.push_back(token.has_value());
    leases.texts.push_back(std::move(beat.lease));
    if (!token) continue;
    extensions.push_back({*token, heartbeat.lease, request.name_space, std::move(beat.progress), std::move(beat.log)});
  }
  if (extensions.empty()) return responder.answer(heartbeat_response(leases, {}));
  backend.engine.heartbeat(std::move(extensions),
                           responder.reply<std::vector<ExtendOutcome>>(
                               [leases = std::move(leases)](const std::vector<ExtendOutcome>& outcomes) {
                                 return heartbeat_response(leases, outcomes);
                               }));
}

void heartbeat(Backend& backend, Request& request, const Responder& responder) {
  extend(backend, request, responder, wire::read_heartbeat(parse_body(request)));
}

// A lease of no length gives the task back.
void give_back(Backend& backend, Request& request, const Responder& responder) {
  wire::Heartbeat returned{.leases = {}, .lease = Duration(0)};
  for (std::string& lease : wire::read_return(parse_body(request)))
    returned.leases.push_back({std::move(lease), {}, {}});
  extend(backend, request, responder, std::move(returned));
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

void list_workers(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space] {
    return json_response(200, wire::write_workers(engine.workers(name_space)));
  });
}

}  // namespace

void add_claim_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/claims", on(backend, claim));
  router.add(Method::post, "/v1/claims/heartbeat", on(backend, heartbeat));
  router.add(Method::post, "/v1/claims/return", on(backend, give_back));
  router.add(Method::post, "/v1/claims/finish", on(backend, finish));
  router.add(Method::get, "/v1/workers", on(backend, list_workers));
}

}  // namespace hapax::http
