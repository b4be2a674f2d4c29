// CloudEvents: starts the activities that match.
#include <fmt/format.h>

#include "http/error.h"
#include "http/parse_event.h"
#include "http/parse_request.h"
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

// The sender of one event looks only at the status.
Response receipt_response(const std::vector<EventReceipt>& receipts) {
  const EventReceipt& receipt = receipts.at(0);
  if (!receipt.is_refused()) return receipts_response(receipts);
  JsonWriter events;
  wire::write_event_array(events, receipts);
  throw RequestError(
      409, "IdempotencyConflict",
      fmt::format("Another event with the id '{}' was delivered before: its type, source, subject or data "
                  "differs. Nothing was started. Give each event an id of its own; where ids are unique "
                  "only within a source, let the activity say \"dedupe_by\": \"source_and_id\".",
                  receipt.id))
      .with_json("events", events.take());
}

void deliver(Backend& backend, Request& request, const Responder& responder) {
  Query(request.query).done();
  const bool batch = is_media_type(request.content_type, kEventBatchType);
  backend.pool.begin(responder, [&engine = backend.engine, responder, name_space = request.name_space,
                                 events = parse_events(request), batch] {
    engine.activities().deliver(
        name_space, events, responder.reply<std::vector<EventReceipt>>(batch ? receipts_response : receipt_response));
  });
}

// The handshake of the CloudEvents webhook specification: a sender of events asks whether it may send. It always may;
// this authorizes nothing, and each delivery still needs its token.
void shake_hands(Backend&, Request& request, const Responder& responder) {
  Query(request.query).done();
  Response response = json_response(200, "{}");
  response.headers.emplace_back("Allow", "POST, OPTIONS");
  if (request.webhook_origin.data() != nullptr) {
    response.headers.emplace_back("WebHook-Allowed-Origin", std::string(request.webhook_origin));
    response.headers.emplace_back("WebHook-Allowed-Rate", "*");
  }
  responder.answer(std::move(response));
}

}  // namespace

void add_event_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/events", on(backend, deliver));
  router.add(Method::options, "/v1/events", on(backend, shake_hands), Access::open);
}

}  // namespace hapax::http
