// Submitting many at once, each with its own outcome.
#include <fmt/core.h>

#include "core/field.h"
#include "http/answer.h"
#include "http/error.h"
#include "http/parse_request.h"
#include "http/service.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

// The place of a fault within the whole batch.
void make_absolute(SubmitResult& result, const std::string& place) {
  auto* refusal = std::get_if<Refusal>(&result);
  if (refusal && !refusal->existing) refusal->pointer.insert(0, place);
}

std::string place_of(std::string_view items, std::size_t index) { return fmt::format("/{}/{}", items, index); }

// The answers to the items in order: errors are already written, the rest comes from the engine.
Response batch_response(std::string_view items, const std::vector<std::string>& errors,
                        std::vector<SubmitResult> results) {
  JsonWriter out;
  out.begin_object().key("receipts").begin_array();
  auto next = results.begin();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i].empty()) {
      out.raw(errors[i]);
    } else if (next != results.end()) {
      make_absolute(*next, place_of(items, i));
      wire::write_submit_result(out, *next++);
    } else {
      throw std::logic_error("the engine answered fewer submissions than it was given");
    }
  }
  out.end_array().end_object();
  return json_response(200, out.take());
}

SubmitRequest read_item(Json item, const std::string& place, Kind kind) {
  SubmitRequest request = wire::read_submit(std::move(item), place, kind);
  if (kind == Kind::workflow && !request.idempotency_key) throw InvalidField(place + "/workflow_id", "is required");
  request.brief = true;
  return request;
}

void submit(Backend& backend, Request& request, const Responder& responder, std::string_view items, Kind kind) {
  std::vector<Json> documents = wire::read_batch(parse_body(request), items);
  std::vector<std::string> errors(documents.size());
  std::vector<SubmitRequest> requests;
  requests.reserve(documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    try {
      requests.push_back(read_item(std::move(documents[i]), place_of(items, i), kind));
    } catch (const InvalidField& error) {
      JsonWriter out;
      write_invalid_field(out, error);
      errors[i] = out.take();
    }
  }
  if (requests.empty()) return responder.answer(batch_response(items, errors, {}));
  backend.engine.submit(request.name_space, std::move(requests),
                        responder.reply<std::vector<SubmitResult>>(
                            [items, errors = std::move(errors)](std::vector<SubmitResult> results) {
                              return batch_response(items, errors, std::move(results));
                            }));
}

void submit_tasks(Backend& backend, Request& request, const Responder& responder) {
  submit(backend, request, responder, "tasks", Kind::task);
}

void start_workflows(Backend& backend, Request& request, const Responder& responder) {
  submit(backend, request, responder, "workflows", Kind::workflow);
}

}  // namespace

void add_batch_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/tasks/batch", on(backend, submit_tasks));
  // Not below /v1/workflows, where "batch" may be a workflow's id.
  router.add(Method::post, "/v1/batch/workflows", on(backend, start_workflows));
}

}  // namespace hapax::http
