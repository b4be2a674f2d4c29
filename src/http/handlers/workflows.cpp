// Starting, reading and controlling workflows.
#include <limits>

#include "core/name.h"
#include "engine/check_request.h"
#include "http/answer.h"
#include "http/error.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/event.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

void start(Backend& backend, Request& request, const Responder& responder) {
  std::vector<SubmitRequest> requests;
  requests.push_back(wire::read_submit(parse_body(request), "", Kind::workflow));
  apply_key_header(requests.back(), request);
  if (!requests.back().idempotency_key) throw InvalidField("/workflow_id", "is required");
  backend.engine.submit(request.name_space, std::move(requests),
                        responder.reply<std::vector<SubmitResult>>(submit_response));
}

void list_workflows(Backend& backend, Request& request, const Responder& responder) {
  backend.pool.answer(responder,
                      [&engine = backend.engine, list = parse_list(request.query, request.name_space, Kind::workflow)] {
                        return list_response(engine, list);
                      });
}

void get_workflow(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, workflow_id = request.params.at(0)] {
                        const auto workflow = engine.find_workflow(name_space, workflow_id);
                        if (!workflow) throw workflow_not_found(workflow_id);
                        JsonWriter out;
                        wire::write_execution(out, *workflow);
                        return json_response(200, out.take());
                      });
}

void get_why(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, workflow_id = request.params.at(0)] {
                        const auto why = engine.why_workflow(name_space, workflow_id);
                        if (!why) throw workflow_not_found(workflow_id);
                        return why_response(*why);
                      });
}

// The run whose history is asked for: the latest, or a named one. A run's id may stand for its workflow's.
Execution find_run(Engine& engine, const std::string& name_space, const std::string& workflow_id,
                   const std::optional<ExecutionId>& run) {
  auto found = run ? engine.find(name_space, *run) : engine.find_workflow(name_space, workflow_id);
  if (!found) throw workflow_not_found(workflow_id);
  const bool belongs =
      found->kind == Kind::workflow && (found->idempotency_key == workflow_id || found->id.to_string() == workflow_id);
  if (!belongs) throw workflow_not_found(workflow_id);
  return *std::move(found);
}

Response history_response(const Execution& run, const std::vector<Event>& events) {
  const bool more = !events.empty() && events.back().no < run.run.events;
  JsonWriter out;
  out.begin_object();
  out.key("workflow_id").string(run.idempotency_key.value_or(""));
  out.key("execution_id").string(run.id.to_string());
  out.key("status").string(to_string(run.status));
  out.key("events").begin_array();
  for (const Event& event : events) wire::write_event(out, event);
  out.end_array().key("next_after");
  more ? out.integer(events.back().no) : out.null();
  out.end_object();
  return json_response(200, out.take());
}

void get_history(Backend& backend, Request& request, const Responder& responder) {
  Query query(request.query);
  const auto after = query.integer("after", 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  const auto limit = static_cast<std::int32_t>(query.integer("limit", 1, 1000).value_or(1000));
  std::optional<ExecutionId> run;
  if (const auto text = query.string("run")) {
    run = ExecutionId::parse(*text);
    if (!run) throw invalid_parameter("run", "must be the id of an execution of this workflow");
  }
  query.done();
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space,
                                  workflow_id = request.params.at(0), run, after, limit] {
    const Execution found = find_run(engine, name_space, workflow_id, run);
    return history_response(found, engine.history(name_space, found.id, after, limit));
  });
}

void get_values(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, workflow_id = request.params.at(0)] {
                        const auto values = engine.values(name_space, workflow_id);
                        if (!values) throw workflow_not_found(workflow_id);
                        JsonWriter out;
                        out.begin_object().key("workflow_id").string(workflow_id).key("values").begin_object();
                        for (const auto& [name, value] : *values) out.key(name).raw(value);
                        out.end_object().end_object();
                        return json_response(200, out.take());
                      });
}

void get_result(Backend& backend, Request& request, const Responder& responder) {
  Query query(request.query);
  const Duration wait = query.duration("wait", kMaxWait).value_or(Duration::zero());
  query.done();
  const std::string& workflow_id = request.params.at(0);
  auto waiting = backend.engine.wait_workflow(
      request.name_space, workflow_id, wait,
      responder.reply<std::optional<Execution>>([workflow_id](const std::optional<Execution>& execution) {
        if (!execution) throw workflow_not_found(workflow_id);
        return result_response(*execution);
      }));
  if (wait > Duration::zero() && waiting) responder.wait(std::move(waiting));
}

// ---- control

ControlRequest control_request(const Request& request, ControlRequest::Action action) {
  ControlRequest operation;
  operation.request_key = parse_request_key(request);
  operation.name_space = request.name_space;
  operation.action = action;
  operation.workflow_id = request.params.at(0);
  return operation;
}

void run_control(Backend& backend, ControlRequest operation, const Responder& responder) {
  const auto respond = [operation](const ControlOutcome& outcome) {
    JsonWriter out;
    wire::write_workflow_control(out, operation, outcome);
    return control_response(outcome, out.take());
  };
  check(operation);
  if (check_idempotency_key(*operation.workflow_id)) {  // not a possible workflow id
    ControlOutcome unknown;
    unknown.kind = ControlOutcome::Kind::not_found;
    return responder.answer(respond(unknown));
  }
  backend.engine.control(operation, responder.reply<ControlOutcome>(respond));
}

void cancel(Backend& backend, Request& request, const Responder& responder) {
  ControlRequest operation = control_request(request, ControlRequest::Action::cancel);
  if (request.body.empty()) {
    require_no_body(request);
  } else {
    wire::read_cancel(parse_body(request), operation);
  }
  run_control(backend, std::move(operation), responder);
}

void resume(Backend& backend, Request& request, const Responder& responder) {
  ControlRequest operation = control_request(request, ControlRequest::Action::resume);
  require_no_body(request);
  run_control(backend, std::move(operation), responder);
}

void fork(Backend& backend, Request& request, const Responder& responder) {
  ControlRequest operation = control_request(request, ControlRequest::Action::fork);
  if (request.body.empty()) {
    require_no_body(request);
  } else {
    wire::read_fork(parse_body(request), operation);
  }
  run_control(backend, std::move(operation), responder);
}

void signal(Backend& backend, Request& request, const Responder& responder) {
  ControlRequest operation = control_request(request, ControlRequest::Action::signal);
  operation.signal = request.params.at(1);
  if (request.body.empty()) {
    require_no_body(request);
  } else {
    wire::read_signal(parse_body(request), operation);
  }
  run_control(backend, std::move(operation), responder);
}

Response update_response(const UpdateRequest& update, const UpdateOutcome& outcome) {
  using State = UpdateOutcome::State;
  JsonWriter out;
  wire::write_update_outcome(out, update, outcome);
  if (outcome.delivery.kind != ControlOutcome::Kind::done) return control_response(outcome.delivery, out.take());
  const int status = outcome.state == State::answered ? 200 : outcome.state == State::pending ? 202 : 409;
  return outcome.delivery.replayed ? replayed_response(status, out.take()) : json_response(status, out.take());
}

void update(Backend& backend, Request& request, const Responder& responder) {
  UpdateRequest update;
  update.request_key = parse_request_key(request);
  update.name_space = request.name_space;
  update.workflow_id = request.params.at(0);
  update.name = request.params.at(1);
  Query query(request.query);
  const Duration wait = query.duration("wait", kMaxWait).value_or(Duration::zero());
  query.done();
  if (request.body.empty()) {
    require_no_body(request);
  } else {
    update.payload = wire::read_update(parse_body(request));
  }
  check(update);
  auto waiting = backend.engine.update(update, wait, responder.reply<UpdateOutcome>([update](const UpdateOutcome& out) {
    return update_response(update, out);
  }));
  if (wait > Duration::zero() && waiting) responder.wait(std::move(waiting));
}

}  // namespace

void add_workflow_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/workflows", on(backend, start), Access::token, KeyHeader::taken);
  router.add(Method::get, "/v1/workflows", on(backend, list_workflows));
  router.add(Method::get, "/v1/workflows/{workflow_id}", on(backend, get_workflow));
  router.add(Method::get, "/v1/workflows/{workflow_id}/why", on(backend, get_why));
  router.add(Method::get, "/v1/workflows/{workflow_id}/history", on(backend, get_history));
  router.add(Method::get, "/v1/workflows/{workflow_id}/values", on(backend, get_values));
  router.add(Method::get, "/v1/workflows/{workflow_id}/result", on(backend, get_result));
  router.add(Method::post, "/v1/workflows/{workflow_id}/cancel", on(backend, cancel), Access::token, KeyHeader::taken);
  router.add(Method::post, "/v1/workflows/{workflow_id}/resume", on(backend, resume), Access::token, KeyHeader::taken);
  router.add(Method::post, "/v1/workflows/{workflow_id}/fork", on(backend, fork), Access::token, KeyHeader::taken);
  router.add(Method::post, "/v1/workflows/{workflow_id}/signals/{name}", on(backend, signal), Access::token,
             KeyHeader::taken);
  router.add(Method::post, "/v1/workflows/{workflow_id}/updates/{name}", on(backend, update), Access::token,
             KeyHeader::taken);
}

}  // namespace hapax::http
