// The settings and counts of queues.
#include "engine/check_request.h"
#include "http/error.h"
#include "http/parse_request.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

std::string queue_name(const Request& request) {
  const std::string& name = request.params.at(0);
  check_setting_name(name);
  return name;
}

Response queue_response(const QueueView& queue) {
  JsonWriter out;
  wire::write_queue(out, queue);
  return json_response(200, out.take());
}

void list_queues(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space] {
    JsonWriter out;
    out.begin_object().key("queues").begin_array();
    for (const QueueView& queue : engine.queues(name_space)) wire::write_queue(out, queue);
    out.end_array().end_object();
    return json_response(200, out.take());
  });
}

void get_queue(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, name = queue_name(request)] {
                        return queue_response(engine.queue(name_space, name));
                      });
}

void put_queue(Backend& backend, Request& request, const Responder& responder) {
  std::string name = queue_name(request);
  QueueSettings settings = QueueSettings::parse(parse_body(request));
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, name = std::move(name),
                                  settings = std::move(settings)] {
    return queue_response(engine.put_queue(name_space, name, settings));
  });
}

void set_paused(Backend& backend, Request& request, const Responder& responder, bool paused) {
  std::string name = queue_name(request);
  require_no_body(request);
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, name = std::move(name),
                                  paused] { return queue_response(engine.set_paused(name_space, name, paused)); });
}

void pause(Backend& backend, Request& request, const Responder& responder) {
  set_paused(backend, request, responder, true);
}

void unpause(Backend& backend, Request& request, const Responder& responder) {
  set_paused(backend, request, responder, false);
}

}  // namespace

void add_queue_routes(Router& router, Backend& backend) {
  router.add(Method::get, "/v1/queues", on(backend, list_queues));
  router.add(Method::get, "/v1/queues/{name}", on(backend, get_queue));
  router.add(Method::put, "/v1/queues/{name}", on(backend, put_queue));
  router.add(Method::post, "/v1/queues/{name}/pause", on(backend, pause));
  router.add(Method::post, "/v1/queues/{name}/unpause", on(backend, unpause));
}

}  // namespace hapax::http
