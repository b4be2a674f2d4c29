// All of Hapax: include this. The library in one listing; examples/tour.cpp is the whole program.
//
//   struct Order { int id; std::int64_t cents; std::string note = "none"; };   // an absent member takes its default
//   BOOST_DESCRIBE_STRUCT(Order, (), (id, cents, note))                        // of boost/describe.hpp
//
//   auto app = hapax::open("sqlite:shop.db");              // or memory:, postgres://…, s3://…, http://127.0.0.1:7373
//   app.configure_queue("payments", {.retention = 30d, .rate_limit = "100/sec"});
//
//   // A declared task is a value: typed, callable from workflows, submittable, mockable; lambdas too.
//   auto charge = app.task("charge", charge_card, {.queue = "payments", .max_attempts = 5, .timeout = 30s,
//                                                  .identity = hapax::contextual("/id")});
//   hapax::Handle<std::string> handle = charge.submit(order, hapax::key("charge-456"));  // said twice: once
//   std::string payment = handle.result();
//   auto name_only = app.task_named<Order, std::string>("charge");             // one that another program runs
//   auto by_name = app.submit("charge", order, hapax::key("charge-456"));      // a hapax::AnyHandle
//
//   // A workflow survives its worker: its code is replayed, and gets the answers that it got before.
//   inline constexpr hapax::Signal<Packed> packed{"packed"};
//   Shipped process_order(hapax::Context& ctx, const Order& order) {
//     hapax::Saga saga(ctx);                                                   // undone in reverse if an exception
//     auto payment = ctx.run(charge_card, order, hapax::key("charge-" + std::to_string(order.id)));  // leaves it
//     saga.undo(refund, payment);
//     if (auto p = ctx.wait(packed, 24h)) ctx.publish("packed_by", p->by);     // a value that others may read
//     else throw hapax::WorkflowFailed("nobody packed it");
//     ctx.signal("warehouse-1", restock, {order.id});                          // from workflow to workflow
//     return {payment};
//   }
//   auto process = app.workflow("process_order", process_order);
//   hapax::WorkflowHandle<Shipped> run = process.start("order-456", order);
//   run.signal(packed, {"eve"}, hapax::request("click-1"));                    // once for each request key
//   int left = run.update(reserve_more, 3, hapax::request("more-1"));          // answered by ctx.on(reserve_more, …)
//   run.request_cancel("by the customer", hapax::request("cancel-1"));         // the code gets CancelRequested
//
//   // In my transaction, on my connection: sqlite3* or PGconn*.
//   charge.submit_in(db, order, hapax::key("charge-456"));
//   process.start_in(db, "order-456", order);
//   const int entry = context.once_in(db, book, order);                        // in a handler: exactly once
//
//   // Cron and events, declared in code.
//   app.schedule("nightly", report, ReportInput{"pdf"}, hapax::cron("0 3 * * *", "Europe/Berlin"));
//   app.on_event<Paid>("order.paid").where("/country", "DE").start(process_paid);
//   app.on_event<Dispute>("payment.disputed").signal([](const auto& e) { return "order-" + e.data.order; }, disputed);
//   app.publish({.id = "evt_1", .source = "/shop", .type = "order.paid", .data = hapax::to_json(paid)});
//
//   // Seen from the program.
//   for (const hapax::Step& s : run.steps()) fmt::print("{} {} {}\n", s.number, s.name, s.status);
//   for (const hapax::TaskInfo& t : app.tasks({.queue = "payments", .status = hapax::Status::failed})) …
//   fmt::print("{}\n", app.why(handle.id()));                                  // why it does not run
//   hapax::Worker worker(app, {.threads = 4});                                 // works until it goes out of scope
//   app.observe({.attempt_failed = …, .stuck = …, .lease_lost = …, .server_away = …});
//
//   // Tests: hapax/testing.h.
//   hapax::testing::TestApp test;
//   test.mock(charge, [](const Order&) { return std::string("pay_1"); });
//   hapax::testing::replay(process, read_file("order-456.history.json"));      // `hapax history order-456 --export`
//
// An app on a store of its own fires the store's schedules while a worker works, and reads a hapax.toml only if
// OpenOptions::config names one. What workers have to say goes to standard error: OpenOptions::log.
#pragma once

#include "hapax/app.h"
#include "hapax/error.h"
#include "hapax/handle.h"
#include "hapax/json.h"
#include "hapax/listing.h"
#include "hapax/observe.h"
#include "hapax/options.h"
#include "hapax/saga.h"
#include "hapax/signal.h"
#include "hapax/task.h"
#include "hapax/trigger.h"
#include "hapax/worker.h"
#include "hapax/workflow.h"
#include "hapax/workflow_handle.h"

namespace hapax {

// Inside the library these names mean what is stored.
using api::CloudEvent;
using api::Status;

}  // namespace hapax
