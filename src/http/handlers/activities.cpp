// Activities: definitions, their runs, triggering by hand.
#include <fmt/core.h>

#include "core/field.h"
#include "engine/check_request.h"
#include "http/answer.h"
#include "http/error.h"
#include "http/parse_request.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/activity.h"
#include "wire/read_request.h"

namespace hapax::http {

namespace {

constexpr std::int64_t kPage = 100;

std::string activity_id(const Request& request) {
  const std::string& id = request.params.at(0);
  check_activity(id);
  return id;
}

Response activity_response(const ActivityView& activity) {
  JsonWriter out;
  wire::write_activity(out, activity);
  return json_response(200, out.take());
}

struct Page {
  std::string cursor;
  std::int32_t limit = 0;
};

Page parse_page(std::string_view text) {
  Query query(text);
  Page page;
  page.cursor = query.string("cursor").value_or("");
  page.limit = static_cast<std::int32_t>(query.integer("limit", 1, kMaxPage).value_or(kPage));
  query.done();
  return page;
}

void list_activities(Backend& backend, Request& request, const Responder& responder) {
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, page = parse_page(request.query)] {
                        JsonWriter out;
                        wire::write_activities(out, engine.activities().list(name_space, page.cursor, page.limit));
                        return json_response(200, out.take());
                      });
}

void get_activity(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, id = activity_id(request)] {
                        const auto activity = engine.activities().find(name_space, id);
                        if (!activity) throw activity_not_found(id);
                        return activity_response(*activity);
                      });
}

void put_activity(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  std::string id = activity_id(request);
  ActivitySettings settings = ActivitySettings::parse(parse_body(request));
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space, id = std::move(id),
                                  settings = std::move(settings)] {
    Activities& activities = engine.activities();
    const bool known = activities.find(name_space, id).has_value();
    Response response = activity_response(activities.put(name_space, id, settings));
    return known ? response : created_response("/v1/activities/", id, std::move(response.body));
  });
}

void delete_activity(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, id = activity_id(request)] {
                        if (!engine.activities().remove(name_space, id)) throw activity_not_found(id);
                        return json_response(kNoContent, "");
                      });
}

void set_paused(Backend& backend, Request& request, const Responder& responder, bool paused) {
  Query(request.query).done();
  std::string id = activity_id(request);
  require_no_body(request);
  backend.pool.answer(responder,
                      [&engine = backend.engine, name_space = request.name_space, id = std::move(id), paused] {
                        const auto activity = engine.activities().set_paused(name_space, id, paused);
                        if (!activity) throw activity_not_found(id);
                        return activity_response(*activity);
                      });
}

void pause(Backend& backend, Request& request, const Responder& responder) {
  set_paused(backend, request, responder, true);
}

void unpause(Backend& backend, Request& request, const Responder& responder) {
  set_paused(backend, request, responder, false);
}

// ---- runs

void list_runs(Backend& backend, Request& request, const Responder& responder) {
  backend.pool.answer(responder, [&engine = backend.engine, name_space = request.name_space,
                                  page = parse_page(request.query), id = activity_id(request)] {
    const std::optional<RunsPage> runs = engine.activities().runs(name_space, id, page.cursor, page.limit);
    if (!runs) throw activity_not_found(id);
    JsonWriter out;
    wire::write_runs(out, *runs);
    return json_response(200, out.take());
  });
}

Response triggered_response(const std::string& id, const std::optional<Triggered>& triggered) {
  if (!triggered) throw activity_not_found(id);
  JsonWriter out;
  wire::write_triggered(out, *triggered);
  if (!triggered->created) return replayed_response(200, out.take());
  return created_response("/v1/workflows/", triggered->workflow_id, out.take());
}

// The request key is optional here: without one, each request is a separate run.
void trigger(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  std::string id = activity_id(request);
  require_no_body(request);
  std::optional<std::string> key;
  if (request.idempotency_key) key = parse_request_key(request);
  backend.pool.begin(responder, [&engine = backend.engine, responder, name_space = request.name_space,
                                 id = std::move(id), key = std::move(key)] {
    engine.activities().trigger(
        name_space, id, key, responder.reply<std::optional<Triggered>>([id](const std::optional<Triggered>& triggered) {
          return triggered_response(id, triggered);
        }));
  });
}

using BackfilledRuns = std::optional<std::vector<ActivityRun>>;

Response backfill_response(const std::string& id, const BackfilledRuns& runs) {
  if (!runs) throw activity_not_found(id);
  JsonWriter out;
  wire::write_runs(out, *runs);
  return json_response(200, out.take());
}

void backfill(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  std::string id = activity_id(request);
  const Backfill wanted = wire::read_backfill(parse_body(request));
  backend.pool.begin(
      responder, [&engine = backend.engine, responder, name_space = request.name_space, id = std::move(id), wanted] {
        engine.activities().backfill(
            name_space, id, wanted,
            responder.reply<BackfilledRuns>([id](const BackfilledRuns& runs) { return backfill_response(id, runs); }));
      });
}

}  // namespace

void add_activity_routes(Router& router, Backend& backend) {
  router.add(Method::get, "/v1/activities", on(backend, list_activities));
  router.add(Method::get, "/v1/activities/{id}", on(backend, get_activity));
  router.add(Method::put, "/v1/activities/{id}", on(backend, put_activity));
  router.add(Method::del, "/v1/activities/{id}", on(backend, delete_activity));
  router.add(Method::get, "/v1/activities/{id}/runs", on(backend, list_runs));
  router.add(Method::post, "/v1/activities/{id}/trigger", on(backend, trigger), Access::token, KeyHeader::taken);
  router.add(Method::post, "/v1/activities/{id}/backfill", on(backend, backfill));
  router.add(Method::post, "/v1/activities/{id}/pause", on(backend, pause));
  router.add(Method::post, "/v1/activities/{id}/unpause", on(backend, unpause));
}

}  // namespace hapax::http
