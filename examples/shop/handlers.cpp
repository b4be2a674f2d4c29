#include "handlers.h"

#include <chrono>

#include "tables.h"
#include "workflow.h"

namespace shop {

using namespace std::chrono_literals;

namespace {

// Other people's systems: the effect key is the same for every attempt, so an attempt after a lost answer charges
// nobody twice.
void declare_partners(hapax::App& app, Partners& partners) {
  app.task(charge,
           [&](hapax::TaskContext& context, const Order& order) {
             return partners.charge(context.effect_key(), order.id, order.cents);
           },
           {.queue = "payments", .max_attempts = 5, .retry = {.initial = 100ms}, .timeout = 30s});
  app.task(refund,
           [&](hapax::TaskContext& context, const std::string& order) { partners.refund(context.effect_key(), order); },
           {.queue = "payments", .max_attempts = 20});
  app.task(ship, [&](hapax::TaskContext& context, const Order& order) {
    return partners.ship(context.effect_key(), order.id);
  });
}

// Our own tables: what a handler writes happens exactly once, because its effect key is written in the same
// transaction. An attempt whose worker died after the commit finds it there.
template <class Write>
void write_once(const hapax::TaskContext& context, const std::string& path, const Write& write) {
  Database database(path);
  Transaction transaction(database);
  context.once_in(database.get(), [&] { write(database); });
  transaction.commit();
}

void declare_tables(hapax::App& app, const std::string& path) {
  app.task(reserve, [path](hapax::TaskContext& context, const Order& order) {
    write_once(context, path, [&](Database& database) {
      if (!reserve_stock(database, order)) throw hapax::FinalError("there are not enough of '" + order.sku + "'");
    });
  });
  app.task(put_back, [path](hapax::TaskContext& context, const std::string& order) {
    write_once(context, path, [&](Database& database) { release_stock(database, order); });
  });
  app.task(stock_up, [path](hapax::TaskContext& context, const Delivery& delivery) {
    write_once(context, path, [&](Database& database) { add_stock(database, delivery.sku, delivery.quantity); });
  });
  app.task(write_report, [path](const std::string& day) {  // twice is as good as once
    Database database(path);
    save_report(database, make_report(database, day));
  });
  app.task(set_state, [path](const Change& change) {  // likewise
    Database database(path);
    change_state(database, change.order, change.state);
  });
}

// Three nights without a server are one report, for the last of them.
void declare_triggers(hapax::App& app) {
  app.schedule("nightly-report", nightly, {},
               hapax::cron("0 3 * * *", "Europe/Berlin").misfire(hapax::Misfire::compress));
  app.on_event<Delivery>("goods.delivered").start(take_delivery);
  app.on_event<Dispute>("payment.disputed")
      .signal([](const auto& event) { return workflow_id_of(event.data.order); }, disputed);
}

}  // namespace

void declare(hapax::App& app, const std::string& database, Partners& partners) {
  declare_partners(app, partners);
  declare_tables(app, database);
  app.workflow(process_order, run_order);
  app.workflow(take_delivery, run_delivery);
  app.workflow(nightly, run_nightly);
  declare_triggers(app);
}

}  // namespace shop
