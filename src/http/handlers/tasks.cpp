// Submitting, reading and controlling tasks.
#include "core/field.h"
#include "engine/check_request.h"
#include "http/answer.h"
#include "http/error.h"
#include "http/parse_request.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

ExecutionId task_id(const Request& request) {
  const auto id = ExecutionId::parse(request.params.at(0));
  if (!id) throw task_not_found(request.params.at(0));
  return *id;
}

void submit(Backend& backend, Request& request, const Responder& responder) {
  std::vector<SubmitRequest> requests;
  requests.push_back(wire::read_submit(parse_body(request)));
  apply_key_header(requests.back(), request);
  backend.engine.submit(request.name_space, std::move(requests),
                        responder.reply<std::vector<SubmitResult>>(submit_response));
}

void get_task(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  const ExecutionId id = task_id(request);
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, id] {
    const auto execution = engine.find(name_space, id);
    if (!execution) throw task_not_found(id.to_string());
    JsonWriter out;
    wire::write_execution_with_log(out, *execution);
    return json_response(200, out.take());
  });
}

void get_why(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  const ExecutionId id = task_id(request);
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, id] {
    const auto why = engine.why(name_space, id);
    if (!why) throw task_not_found(id.to_string());
    return why_response(*why);
  });
}

void list_tasks(Backend& backend, Request& request, const Responder& responder) {
  backend.pool.answer(responder,
                      [&engine = backend.engine, list = parse_list(request.query, request.name_space, Kind::task)] {
                        return list_response(engine, list);
                      });
}

void get_result(Backend& backend, Request& request, const Responder& responder) {
  Query query(request.query);
  const Duration wait = query.duration("wait", kMaxWait).value_or(Duration::zero());
  query.done();
  const ExecutionId id = task_id(request);
  auto waiting = backend.engine.wait_closed(
      request.name_space, id, wait,
      responder.reply<std::optional<Execution>>([id](const std::optional<Execution>& execution) {
        if (!execution) throw task_not_found(id.to_string());
        return result_response(*execution);
      }));
  if (wait > Duration::zero() && waiting) responder.wait(std::move(waiting));
}

Response task_control_response(std::string_view id, const ControlOutcome& outcome) {
  JsonWriter out;
  wire::write_control(out, id, outcome);
  return control_response(outcome, out.take());
}

void control(Backend& backend, Request& request, const Responder& responder, ControlRequest::Action action) {
  ControlRequest operation;
  operation.request_key = parse_request_key(request);
  require_no_body(request);
  const auto id = ExecutionId::parse(request.params.at(0));
  if (!id) {
    ControlOutcome unknown;
    unknown.kind = ControlOutcome::Kind::not_found;
    return responder.answer(task_control_response(request.params.at(0), unknown));
  }
  operation.name_space = request.name_space;
  operation.action = action;
  operation.target = *id;
  backend.engine.control(std::move(operation),
                         responder.reply<ControlOutcome>([id = id->to_string()](const ControlOutcome& outcome) {
                           return task_control_response(id, outcome);
                         }));
}

void cancel(Backend& backend, Request& request, const Responder& responder) {
  control(backend, request, responder, ControlRequest::Action::cancel);
}

void retry(Backend& backend, Request& request, const Responder& responder) {
  control(backend, request, responder, ControlRequest::Action::retry);
}

}  // namespace

void add_task_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/tasks", on(backend, submit), Access::token, KeyHeader::taken);
  router.add(Method::get, "/v1/tasks", on(backend, list_tasks));
  router.add(Method::get, "/v1/tasks/{id}", on(backend, get_task));
  router.add(Method::get, "/v1/tasks/{id}/why", on(backend, get_why));
  router.add(Method::get, "/v1/tasks/{id}/result", on(backend, get_result));
  router.add(Method::post, "/v1/tasks/{id}/cancel", on(backend, cancel), Access::token, KeyHeader::taken);
  router.add(Method::post, "/v1/tasks/{id}/retry", on(backend, retry), Access::token, KeyHeader::taken);
}

}  // namespace hapax::http
