// Submitting, reading and controlling tasks.
#include <fmt/core.h>

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

// The place of a fault within the whole batch.
void make_absolute(SubmitResult& result, std::size_t index) {
  auto* refusal = std::get_if<Refusal>(&result);
  if (refusal && !refusal->existing) refusal->pointer.insert(0, fmt::format("/tasks/{}", index));
}

// The answers to the items in order: errors are already written, the rest comes from the engine.
Response batch_response(const std::vector<std::string>& errors, std::vector<SubmitResult> results) {
  JsonWriter out;
  out.begin_object().key("receipts").begin_array();
  auto next = results.begin();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i].empty()) {
      out.raw(errors[i]);
    } else if (next != results.end()) {
      make_absolute(*next, i);
      wire::write_submit_result(out, *next++);
    } else {
      throw std::logic_error("the engine answered fewer submissions than it was given");
    }
  }
  out.end_array().end_object();
  return json_response(200, out.take());
}

void submit_batch(Backend& backend, Request& request, const Responder& responder) {
  std::vector<Json> tasks = wire::read_batch(parse_body(request));
  std::vector<std::string> errors(tasks.size());
  std::vector<SubmitRequest> requests;
  requests.reserve(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    try {
      requests.push_back(wire::read_submit(std::move(tasks[i]), fmt::format("/tasks/{}", i)));
      requests.back().brief = true;
    } catch (const InvalidField& error) {
      JsonWriter out;
      write_invalid_field(out, error);
      errors[i] = out.take();
    }
  }
  if (requests.empty()) return responder.answer(batch_response(errors, {}));
  backend.engine.submit(
      request.name_space, std::move(requests),
      responder.reply<std::vector<SubmitResult>>([errors = std::move(errors)](std::vector<SubmitResult> results) {
        return batch_response(errors, std::move(results));
      }));
}

void get_task(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  const ExecutionId id = task_id(request);
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, id] {
    const auto execution = engine.find(name_space, id);
    if (!execution) throw task_not_found(id.to_string());
    JsonWriter out;
    wire::write_execution(out, *execution);
    return json_response(200, out.take());
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
  router.add(Method::post, "/v1/tasks/batch", on(backend, submit_batch));
  router.add(Method::get, "/v1/tasks/{id}", on(backend, get_task));
  router.add(Method::get, "/v1/tasks/{id}/result", on(backend, get_result));
  router.add(Method::post, "/v1/tasks/{id}/cancel", on(backend, cancel), Access::token, KeyHeader::taken);
  router.add(Method::post, "/v1/tasks/{id}/retry", on(backend, retry), Access::token, KeyHeader::taken);
}

}  // namespace hapax::http
