#include "workflow.h"

#include <chrono>
#include <iomanip>
#include <sstream>
#include <utility>

namespace shop {

using namespace std::chrono_literals;

namespace {

// The warehouse has a day. Until then the customer may dispute the payment.
Packed wait_for_the_warehouse(hapax::Context& ctx) {
  const auto packing = ctx.start_wait(packed);
  const auto dispute = ctx.start_wait(disputed);
  const auto closing_time = ctx.start_sleep(24h);
  switch (ctx.any(packing, dispute, closing_time)) {
    case 0: return packing.get();
    case 1: throw hapax::WorkflowFailed("disputed: " + dispute.get().reason);
    default: throw hapax::WorkflowFailed("nobody packed it in a day");
  }
}

}  // namespace

Shipped run_order(hapax::Context& ctx, const Order& order) {
  hapax::Saga saga(ctx);  // undone in reverse if a step fails, the code throws, or the customer cancels
  saga.undo(set_state, {order.id, "given up"});

  // Said before the step: a charge whose answer was lost may have happened.
  saga.undo(refund, order.id);
  const std::string payment = ctx.run(charge, order, hapax::key("charge-" + order.id));
  saga.undo(put_back, order.id);
  ctx.run(reserve, order);
  ctx.run(set_state, {order.id, "paid"});

  std::string note = order.note;
  ctx.on(change_note, [&](const std::string& wanted) { return std::exchange(note, wanted); });
  const Packed by = wait_for_the_warehouse(ctx);
  ctx.publish("packed_by", by.by);

  const std::string parcel = ctx.run(ship, order);
  ctx.run(set_state, {order.id, "shipped"});
  return {payment, parcel, note};
}

void run_delivery(hapax::Context& ctx, const hapax::EventOf<Delivery>& event) { ctx.run(stock_up, event.data); }

void run_nightly(hapax::Context& ctx, const Night& night) {
  if (night.window) return ctx.run(write_report, night.window->to.substr(0, 10));
  if (night.scheduled_for) return ctx.run(write_report, night.scheduled_for->substr(0, 10));
  const auto today = std::chrono::floor<std::chrono::days>(ctx.now());  // started by hand
  const std::chrono::year_month_day date(today);
  std::ostringstream text;
  text << std::setfill('0') << int(date.year()) << '-' << std::setw(2) << unsigned(date.month()) << '-' << std::setw(2)
       << unsigned(date.day());
  ctx.run(write_report, text.str());
}

}  // namespace shop
