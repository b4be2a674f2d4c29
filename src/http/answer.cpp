#include "http/answer.h"

#include "http/damage_log.h"
#include "http/error.h"
#include "wire/header.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

// The run that a "parent" names: by its own id, or by the workflow id, which names its latest run.
std::optional<ExecutionId> find_parent(Engine& engine, const std::string& name_space, const std::string& parent) {
  const auto id = ExecutionId::parse(parent);
  if (id && engine.find(name_space, *id)) return id;
  if (const auto workflow = engine.find_workflow(name_space, parent)) return workflow->id;
  return id;
}

Response page_response(const Page& page) {
  JsonWriter out;
  wire::write_page(out, page);
  return json_response(200, out.take());
}

int control_status(ControlOutcome::Kind kind) {
  switch (kind) {
    case ControlOutcome::Kind::done: return 200;
    case ControlOutcome::Kind::not_found: return 404;
    case ControlOutcome::Kind::no_such_step: return 400;
    default: return 409;
  }
}

}  // namespace

Response created_response(std::string_view collection, std::string_view name, std::string body) {
  Response response = json_response(201, std::move(body));
  response.headers.emplace_back("Location", std::string(collection) + wire::percent_encode(name));
  return response;
}

Response replayed_response(int status, std::string body) {
  Response response = json_response(status, std::move(body));
  response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

Response submit_response(std::vector<SubmitResult> results) {
  const SubmitResult& result = results.at(0);
  const auto* refused = std::get_if<Refusal>(&result);
  if (refused && refused->code == Refusal::Code::store_corrupt) {
    throw Failure(Failure::Code::corrupt, refused->message, refused->message);
  }
  JsonWriter out;
  wire::write_submit_result(out, result);
  if (const auto* refusal = std::get_if<Refusal>(&result)) return json_response(status_of(*refusal), out.take());
  const auto& receipt = std::get<Receipt>(result);
  if (!receipt.created) return replayed_response(200, out.take());
  if (receipt.dry_run) return json_response(200, out.take());
  const Execution& execution = receipt.execution;
  return execution.kind == Kind::workflow
             ? created_response("/v1/workflows/", execution.idempotency_key.value_or(""), out.take())
             : created_response("/v1/tasks/", execution.id.to_string(), out.take());
}

Response list_response(Engine& engine, ListRequest request) {
  ListFilter& filter = request.filter;
  if (request.parent) {
    filter.parent = find_parent(engine, filter.name_space, *request.parent);
    if (!filter.parent) return page_response({});
  }
  const Page page = engine.list(filter);
  for (const Damaged& damaged : page.damaged) log_damage(damaged.what);
  return page_response(page);
}

Response why_response(const Why& why) {
  JsonWriter out;
  wire::write_why(out, why);
  return json_response(200, out.take());
}

Response result_response(const Execution& execution) {
  JsonWriter out;
  wire::write_result(out, execution);
  return json_response(is_closed(execution.status) ? 200 : 202, out.take());
}

Response control_response(const ControlOutcome& outcome, std::string body) {
  const int status = control_status(outcome.kind);
  return outcome.replayed ? replayed_response(status, std::move(body)) : json_response(status, std::move(body));
}

}  // namespace hapax::http
