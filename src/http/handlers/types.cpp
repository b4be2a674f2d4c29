// The settings of types: declaring one (PUT), tuning one (PATCH), and what code declares.
#include "engine/check_request.h"
#include "http/error.h"
#include "http/parse_request.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

std::string type_name(const Request& request) {
  const std::string& name = request.params.at(0);
  check_setting_name(name);
  return name;
}

Response type_response(const TypeView& type) {
  JsonWriter out;
  wire::write_type(out, type);
  return json_response(200, out.take());
}

void list_types(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space] {
    JsonWriter out;
    out.begin_object().key("types").begin_array();
    for (const TypeView& type : engine.types(name_space)) wire::write_type(out, type);
    out.end_array().end_object();
    return json_response(200, out.take());
  });
}

void get_type(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space,
                                  name = type_name(request)] { return type_response(engine.type(name_space, name)); });
}

void put_type(Backend& backend, Request& request, const Responder& responder) {
  std::string name = type_name(request);
  TypeSettings settings = TypeSettings::parse(parse_body(request));
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, name = std::move(name),
                                  settings = std::move(settings)] {
    return type_response(engine.put_type(name_space, name, settings));
  });
}

// What a program's code says of the type, which the library sends.
void declare_type(Backend& backend, Request& request, const Responder& responder) {
  std::string name = type_name(request);
  TypeSettings settings = TypeSettings::parse(parse_body(request));
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, name = std::move(name),
                                  settings = std::move(settings)] {
    return type_response(engine.declare_type(name_space, name, settings));
  });
}

void patch_type(Backend& backend, Request& request, const Responder& responder) {
  std::string name = type_name(request);
  Json patch = parse_body(request);
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, name = std::move(name),
                       patch = std::move(patch)] { return type_response(engine.patch_type(name_space, name, patch)); });
}

}  // namespace

void add_type_routes(Router& router, Backend& backend) {
  router.add(Method::get, "/v1/types", on(backend, list_types));
  router.add(Method::get, "/v1/types/{name}", on(backend, get_type));
  router.add(Method::put, "/v1/types/{name}", on(backend, put_type));
  router.add(Method::patch, "/v1/types/{name}", on(backend, patch_type));
  router.add(Method::put, "/v1/types/{name}/code", on(backend, declare_type));
}

}  // namespace hapax::http
