// A task with a key: say it twice, it happens once. Run it again on the same store, and nothing is charged.
//
//   order_tasks [URL]        memory: unless given; sqlite:orders.db, http://127.0.0.1:7373
#include <hapax/hapax.h>

#include <boost/describe.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

struct Order {
  int id;
  double amount;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, amount))

int charges = 0;

std::string charge_card(const Order& order) {
  std::cout << "charging " << order.amount << " for order " << order.id << "\n";
  ++charges;
  return "charge-" + std::to_string(order.id);
}

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  app.task("charge_card", charge_card, {.queue = "payments"});

  const Order order{456, 99.99};
  auto first = app.submit(charge_card, order, hapax::key("charge-order-456"));
  auto again = app.submit(charge_card, order, hapax::key("charge-order-456"));

  app.work({.threads = 1, .until_idle_for = 100ms});  // here; or in another process

  const auto charge = again.result<std::string>();
  std::cout << charge << ", charged " << charges << " times by this run\n";

  bool conflict = false;
  try {
    app.submit(charge_card, Order{456, 1.00}, hapax::key("charge-order-456"));
  } catch (const hapax::Error& error) {
    conflict = error.code() == "IdempotencyConflict";
    std::cout << error.code() << ": " << error.what() << "\n";
  }

  const bool as_said = first.id() == again.id() && !again.created() && charges == (first.created() ? 1 : 0) &&
                       charge == "charge-456" && conflict;
  return as_said ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
