// The ledger of identities: look up, release.
#include "engine/check_request.h"
#include "http/error.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

std::string describe_missing(const std::string& type, const std::string& key) {
  const std::string of_type = type.empty() ? "" : " of type '" + type + "'";
  return "No submission" + of_type + " with the key '" + key + "' is in the ledger.";
}

void find_identity(Backend& backend, Request& request, const Responder& responder) {
  Query query(request.query);
  std::string type = query.string("type").value_or("");
  std::string key = query.required("key", query.string("key"));
  auto queue = query.string("queue");
  std::optional<Scope> scope;
  if (const auto text = query.string("scope")) scope = Scope::parse(*text);
  query.done();
  check_identity_query(type, scope, queue, key);
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, type = std::move(type),
                                  key = std::move(key), queue = std::move(queue), scope = std::move(scope)] {
    const auto found = engine.find_identity(name_space, type, scope, queue, key);
    if (!found) {
      throw RequestError(404, "IdentityNotFound", describe_missing(type, key));
    }
    JsonWriter out;
    wire::write_identity(out, *found);
    return json_response(200, out.take());
  });
}

void release_identity(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  const auto hash = IdentityHash::parse(request.params.at(0));
  if (!hash) throw invalid_parameter("hash", "must be an identity hash: \"sha256:\" and 64 hexadecimal digits");
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, hash = *hash] {
    const bool released = engine.release_identity(name_space, hash);
    JsonWriter out;
    out.begin_object().key("identity_hash").string(hash.to_string());
    out.key("released").boolean(released).end_object();
    return json_response(200, out.take());
  });
}

}  // namespace

void add_identity_routes(Router& router, Backend& backend) {
  router.add(Method::get, "/v1/identities", on(backend, find_identity));
  router.add(Method::del, "/v1/identities/{hash}", on(backend, release_identity));
}

}  // namespace hapax::http
