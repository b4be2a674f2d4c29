// The library in one listing: tasks and workflows as values, signals, a saga, cancels, transactions of one's own, cron,
// events, and what a program sees of it all. Run it again on the same store, and nothing happens twice.
//
//   tour [URL]        memory: unless given; sqlite:shop.db, postgres://…, http://127.0.0.1:7373
#include <hapax/hapax.h>
#include <hapax/testing.h>

#include <boost/describe.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "own_database.h"

using namespace std::chrono_literals;

struct Order {
  int id;
  std::int64_t cents;
  std::string note = "none";  // an absent member takes its default
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, cents, note))

struct Packed {
  std::string by;
};
BOOST_DESCRIBE_STRUCT(Packed, (), (by))

struct Restock {
  int order;
};
BOOST_DESCRIBE_STRUCT(Restock, (), (order))

struct Shipped {
  std::string payment;
};
BOOST_DESCRIBE_STRUCT(Shipped, (), (payment))

struct Dispute {
  std::string order;
};
BOOST_DESCRIBE_STRUCT(Dispute, (), (order))

struct ReportInput {
  std::string format;
};
BOOST_DESCRIBE_STRUCT(ReportInput, (), (format))

std::string charge_card(const Order& order) { return "pay_" + std::to_string(order.id); }
void refund_card(const std::string& payment) { std::cout << "refunded " << payment << "\n"; }

inline constexpr hapax::Signal<Packed> packed{"packed"};
inline constexpr hapax::Signal<Restock> restock{"restock"};
inline constexpr hapax::Signal<Dispute> disputed{"disputed"};
inline constexpr hapax::Update<int, int> reserve_more{"reserve_more"};

// A task that is named in a header, for all programs that have to do with it.
inline const hapax::Task<std::string, void> refund("refund");

// Writes to the program's own tables. Returns the number of its entry.
inline constexpr auto book = [](auto* db, const Order& order) {
  const std::string id = std::to_string(order.id);
  run(db, "INSERT INTO bookings (order_id) VALUES (" + id + ")");
  return number(db, "SELECT count(*) FROM bookings WHERE order_id = " + id);
};

bool create_tables(auto* db) {
  run(db, "CREATE TABLE IF NOT EXISTS bookings (order_id INTEGER NOT NULL)");
  run(db,  // as `hapax effects --sql` prints it
      "CREATE TABLE IF NOT EXISTS hapax_effects (effect_key TEXT PRIMARY KEY, result TEXT,"
      " created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)");
  return true;
}

Shipped process_order(hapax::Context& ctx, const Order& order) {
  int left = 10;
  ctx.on(reserve_more, [&](int count) { return left -= count; });
  hapax::Saga saga(ctx);  // undone in reverse on a failed step, a bad payload, a cancellation
  auto payment = ctx.run(charge_card, order, hapax::key("charge-" + std::to_string(order.id)));
  saga.undo(refund, payment);
  if (auto p = ctx.wait(packed, 24h)) {
    ctx.publish("packed_by", p->by);  // a value that others may read
  } else {
    throw hapax::WorkflowFailed("nobody packed it");
  }
  ctx.signal("warehouse-1", restock, {order.id});  // from workflow to workflow
  return {payment};
}

int main(int argc, char** argv) try {
  const std::string url = argc > 1 ? argv[1] : "memory:";
  auto app = hapax::open(url);
  app.configure_queue("payments", {.retention = 30d, .rate_limit = "100/sec"});

  auto charge = app.task("charge", charge_card,
                         {.queue = "payments",
                          .max_attempts = 5,
                          .retry = {.initial = 100ms},
                          .timeout = 30s,
                          .identity = hapax::contextual("/id")});
  app.task(refund, refund_card);
  auto process = app.workflow("process_order", process_order);
  auto warehouse = app.workflow("warehouse", [](hapax::Context& ctx) { return ctx.wait(restock).order; });
  auto process_paid = app.workflow("process_paid", [charge](hapax::Context& ctx, const hapax::EventOf<Order>& event) {
    return "paid " + ctx.run(charge, event.data, hapax::key("charge-" + std::to_string(event.data.id)));
  });
  auto book_order = app.task("book_order", [url](hapax::TaskContext& context, const Order& order) {
    return in_transaction(url, [&](auto* db) {
      create_tables(db);
      const int entry = context.once_in(db, book, order);  // in a handler: exactly once for what it writes there
      return entry;
    });
  });
  auto complaint = app.workflow("complaint", [](hapax::Context& ctx) { return ctx.wait(disputed).order; });
  auto report = app.workflow("report", [](hapax::Context&, const ReportInput& input) { return input.format; });

  app.schedule("nightly", report, ReportInput{"pdf"},
               hapax::cron("0 3 * * *", "Europe/Berlin").misfire(hapax::Misfire::compress));
  app.on_event<Order>("order.paid").where("/note", "DE").start(process_paid);
  app.on_event<Dispute>("payment.disputed").signal([](const auto& e) { return "complaint-" + e.data.order; }, disputed);

  int failures = 0;
  app.observe({.attempt_failed = [&](const hapax::AttemptFailed&) { ++failures; },
               .stuck = [&](const hapax::WorkflowStuck&) { ++failures; },
               .lease_lost = [&](const hapax::LeaseLost&) { ++failures; },
               .server_away = [&](const hapax::ServerAway&) { ++failures; }});
  hapax::Worker worker(app, {.threads = 4});  // works until it goes out of scope; work() blocks

  const Order order{456, 9999};
  hapax::Handle<std::string> handle = charge.submit(order, hapax::key("charge-456"));
  std::string payment = handle.result();  // no template argument to get wrong
  auto name_only = app.task_named<Order, std::string>("charge");
  auto handle2 = app.submit("charge", order, hapax::key("charge-456"));  // by name
  bool as_said = payment == "pay_456" && handle2.id() == handle.id() && name_only.name() == "charge";

  auto stock = warehouse.start("warehouse-1");
  hapax::WorkflowHandle<Shipped> run = process.start("order-456", order);
  const int left = run.update(reserve_more, 3, hapax::request("more-1"));  // a signal with an answer
  as_said = as_said && left == 7;
  if (run.status() != "completed") run.signal(packed, {"eve"}, hapax::request("click-1"));
  as_said = as_said && run.result().payment == "pay_456" && stock.result() == 456;
  as_said = as_said && run.value<std::string>("packed_by") == "eve";

  auto late = process.start("order-457", Order{457, 1}, {.reuse = "reject"});  // cancelled, it is not begun again
  late.request_cancel("by the customer", hapax::request("cancel-1"));  // thrown in the code as hapax::CancelRequested
  try {
    late.result();
    as_said = false;
  } catch (const hapax::TaskFailed& end) {
    as_said = as_said && end.code() == "WorkflowCancelled";
  }

  if (has_own_database(url)) {  // in my transaction, on my connection: sqlite3* or PGconn*
    as_said = as_said && in_transaction(url, [&](auto* db) {
                const auto same = charge.submit_in(db, order, hapax::key("charge-456"));
                return same.id() == handle.id() && process.start_in(db, "order-456", order).run_id() == run.run_id();
              });
  }
  as_said = as_said && book_order.submit(order, hapax::key("book-456")).result() == 1;
  as_said = as_said && app.once("charge-order-459", charge_card, Order{459, 1}) == "pay_459";  // here, once for its key

  auto complaining = complaint.start("complaint-456");
  auto published =
      app.publish({.id = "evt_1", .source = "/shop", .type = "order.paid", .data = hapax::to_json(Order{1, 2, "DE"})});
  for (const auto* started : {&published.started, &published.duplicates}) {
    for (const std::string& id : *started) as_said = as_said && process_paid.find(id).result() == "paid pay_1";
  }
  app.publish(hapax::CloudEvent{
      .id = "evt_2", .source = "/bank", .type = "payment.disputed", .data = hapax::to_json(Dispute{"456"})});
  as_said = as_said && complaining.result() == "456";

  for (const hapax::Step& s : run.steps()) {
    std::cout << s.number << " " << s.name << " " << s.status << " " << s.last_error << "\n";
  }
  for (const hapax::TaskInfo& t : app.tasks({.queue = "payments", .status = hapax::Status::failed})) {
    std::cout << t.id << " failed\n";
    as_said = false;
  }
  std::cout << app.why(handle.id()) << "\n";

  hapax::testing::TestApp test;
  test.mock(charge, [](const Order&) { return std::string("pay_1"); });
  auto tried = test.workflow("process_order", [charge](hapax::Context& ctx, const Order& tried_order) {
    return ctx.run(charge, tried_order);
  });
  auto trial = tried.start("order-1", {1, 2});
  test.run_until_closed(trial);
  as_said = as_said && trial.result() == "pay_1" && failures == 0;
  hapax::testing::replay(process, run.export_json());  // as `hapax history --export` writes it

  return as_said ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
