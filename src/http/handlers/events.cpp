// CloudEvents from anywhere: what waits for them is started.
#include "http/parse_event.h"
#include "http/query.h"
#include "http/service.h"
#include "wire/activity.h"

namespace hapax::http {

namespace {

Response receipts_response(const std::vector<EventReceipt>& receipts) {
  JsonWriter out;
  wire::write_event_receipts(out, receipts);
  return json_response(200, out.take());
}

void deliver(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  backend.pool.begin(responder, [&engine = backend.engine, responder, name_space = request.name_space,
                                 events = parse_events(request)] {
    engine.activities().deliver(name_space, events, responder.reply<std::vector<EventReceipt>>(receipts_response));
  });
}

}  // namespace

void add_event_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/events", on(backend, deliver));
}

}  // namespace hapax::http
