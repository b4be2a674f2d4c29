// A workflow: charge, reserve, ship; and compensation if a step fails. Kill it at any moment and run it again: it
// continues where it was, and nothing happens twice.
//
//   order_workflow [URL] [BOOKS] [STREET]      memory: and no file unless given; nothing can be shipped to "nowhere"
#include <hapax/hapax.h>

#include <boost/describe.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

using namespace std::chrono_literals;

struct Order {
  int id = 0;
  int cents = 0;
  std::string street;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, cents, street))

struct Outcome {
  std::string status;
  std::string parcel;
};
BOOST_DESCRIBE_STRUCT(Outcome, (), (status, parcel))

// The outside world: like payment providers, it takes a key with each request and does each once. Its books outlive us.
class World {
 public:
  void open(const std::string& file) {
    file_ = file;
    std::ifstream books(file_);
    for (std::string key, rest; books >> key && std::getline(books, rest);) known_.insert(key);
  }

  void book(const std::string& key, const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (!known_.insert(key).second) return;
    if (!file_.empty()) std::ofstream(file_, std::ios::app) << key << " " << what << std::endl;
  }

 private:
  std::mutex mutex_;
  std::string file_;
  std::set<std::string> known_;
};

World world;

std::string charge(hapax::TaskContext& context, const Order& order) {
  world.book(context.effect_key(), "charge " + std::to_string(order.cents));
  return "payment-" + std::to_string(order.id);
}

std::string reserve(hapax::TaskContext& context, const Order& order) {
  world.book(context.effect_key(), "reserve " + std::to_string(order.id));
  return "shelf-" + std::to_string(order.id % 10);
}

std::string ship(hapax::TaskContext& context, const Order& order) {
  if (order.street == "nowhere") throw hapax::FinalError("there is no such street");
  world.book(context.effect_key(), "ship " + std::to_string(order.id));
  return "parcel-" + std::to_string(order.id);
}

void release(hapax::TaskContext& context, const std::string& shelf) {
  world.book(context.effect_key(), "release " + shelf);
}

void refund(hapax::TaskContext& context, const std::string& payment) {
  world.book(context.effect_key(), "refund " + payment);
}

Outcome process_order(hapax::Context& ctx, const Order& order) {
  const auto payment = ctx.run(charge, order, hapax::key("charge-order-" + std::to_string(order.id)));
  const auto shelf = ctx.run(reserve, order);
  try {
    ctx.sleep(10ms);  // or days: time for second thoughts
    return {"shipped", ctx.run(ship, order)};
  } catch (const hapax::StepFailed& error) {
    const auto released = ctx.start(release, shelf);
    const auto refunded = ctx.start(refund, payment);
    ctx.all(released, refunded);
    return {"refunded: " + error.message(), ""};
  }
}

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  if (argc > 2) world.open(argv[2]);
  const Order order{456, 9999, argc > 3 ? argv[3] : "Main Street"};

  app.task("charge", charge, {.queue = "payments"});
  app.task("reserve", reserve);
  app.task("ship", ship);
  app.task("release", release);
  app.task("refund", refund, {.queue = "payments"});
  app.workflow("process_order", process_order);

  auto handle = app.start(process_order, "order-456", order);  // the id is its identity: started once

  const std::jthread worker([&](std::stop_token stop) {  // or in another process
    const std::stop_callback on_stop(stop, [&] { app.stop(); });
    app.work({.lease = 2s, .handle_signals = false});
  });
  const auto outcome = handle.result<Outcome>();
  std::cout << outcome.status << " " << outcome.parcel << "\n";

  const bool shipped = outcome.status == "shipped" && outcome.parcel == "parcel-456";
  const bool refunded = outcome.status == "refunded: there is no such street";
  return (order.street == "nowhere" ? refunded : shipped) ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
