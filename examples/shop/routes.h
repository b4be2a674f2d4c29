// What the shop answers:
//
//   PUT  /orders/{id}          {"sku","quantity","note"}: places an order; again, it is the same order
//   GET  /orders/{id}          its row, and what its workflow says
//   POST /orders/{id}/packed   {"by"}, from the warehouse; once for each Idempotency-Key
//   POST /orders/{id}/cancel   {"reason"}, from the customer; likewise
//   POST /orders/{id}/note     {"note"}, from the customer; answers with the note before; likewise
//   GET  /orders/{id}/why      why it goes no further
//   POST /events               CloudEvents: "payment.disputed" and "goods.delivered"; each id once
//   GET  /products, /reports
#pragma once

#include <string>

#include "http.h"
#include "types.h"

namespace shop {

class Routes {
 public:
  Routes(const hapax::App& app, std::string database);

  // Never throws: what went wrong is an answer.
  Answer respond(const Request& request);

 private:
  Answer route(const Request& request);
  Answer route_order(const Request& request, const std::string& id);

  Answer place(const std::string& id, const std::string& body);
  Answer show(const std::string& id);
  Answer tell_packed(const std::string& id, const Request& request);
  Answer note(const std::string& id, const Request& request);
  Answer cancel(const std::string& id, const Request& request);
  Answer take_event(const std::string& body);

  hapax::App app_;
  const hapax::Workflow<Order, Shipped> process_;
  const std::string database_;
};

}  // namespace shop
