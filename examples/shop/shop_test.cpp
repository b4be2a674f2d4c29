// The shop without its web service: everything in this process, on a clock that skips the waiting.
#include <gtest/gtest.h>
#include <hapax/testing.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "handlers.h"
#include "tables.h"

namespace shop {
namespace {

using namespace std::chrono_literals;

class Shop : public testing::Test {
 protected:
  Shop() {
    create_tables(database);
    declare(app, directory / "shop.db", partners);
    add_order(database, order);
  }
  ~Shop() override { std::filesystem::remove_all(directory); }

  hapax::WorkflowHandle<Shipped> start() { return app.start(process_order, "order-456", order); }

  std::string state() { return find_order(database, "456")->state; }
  std::int64_t lamps() { return find_product(database, "lamp")->stock; }
  std::vector<std::string> booked() {
    std::vector<std::string> lines;
    std::ifstream books(directory / "partners.txt");
    for (std::string key, what, id; books >> key >> what >> id;) lines.push_back(what + " " + id);
    return lines;
  }

  static std::filesystem::path new_directory() {
    std::string name = std::filesystem::temp_directory_path() / "shop-XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    return name;
  }

  const std::filesystem::path directory = new_directory();
  Database database{directory / "shop.db"};
  Partners partners{directory / "partners.txt"};
  hapax::testing::TestApp app;
  Order order{.id = "456", .sku = "lamp", .quantity = 2, .cents = 9800};
};

using Strings = std::vector<std::string>;

TEST_F(Shop, ShipsWhatTheWarehouseHasPacked) {
  const auto run = start();
  app.run();
  EXPECT_EQ(state(), "paid");
  run.signal(packed, {"eve"}, hapax::request("click-1"));
  run.signal(packed, {"eve"}, hapax::request("click-1"));
  app.run_until_closed(run);

  EXPECT_EQ(run.result().parcel, "parcel-456");
  EXPECT_EQ(run.value<std::string>("packed_by"), "eve");
  EXPECT_EQ(state(), "shipped");
  EXPECT_EQ(lamps(), 8);
  EXPECT_EQ(booked(), (Strings{"charge 456", "ship 456"}));
}

TEST_F(Shop, GivesUpWhatNobodyPacksInADay) {
  const auto run = start();
  const auto before = app.now();
  app.run_until_closed(run);

  EXPECT_EQ(run.status(), "failed");
  EXPECT_EQ(app.now() - before, 24h);
  EXPECT_EQ(state(), "given up");
  EXPECT_EQ(lamps(), 10);
  EXPECT_EQ(booked(), (Strings{"charge 456", "refund 456"}));
}

TEST_F(Shop, UndoesEverythingWhenTheCustomerCancels) {
  const auto run = start();
  app.run();
  run.request_cancel("changed my mind", hapax::request("cancel-1"));
  app.run_until_closed(run);

  EXPECT_EQ(run.status(), "cancelled");
  EXPECT_EQ(state(), "given up");
  EXPECT_EQ(lamps(), 10);
  EXPECT_EQ(booked(), (Strings{"charge 456", "refund 456"}));
}

TEST_F(Shop, UndoesEverythingAfterADispute) {
  const auto run = start();
  app.run();
  app.publish(
      {.id = "evt-1", .source = "/bank", .type = "payment.disputed", .data = hapax::to_json(Dispute{"456", "not me"})});
  app.run_until_closed(run);

  EXPECT_EQ(run.status(), "failed");
  EXPECT_EQ(booked(), (Strings{"charge 456", "refund 456"}));
}

TEST_F(Shop, ADeclinedCardIsNotRefunded) {
  order.cents = 100'001;
  const auto run = start();
  app.run_until_closed(run);

  EXPECT_EQ(run.status(), "failed");
  EXPECT_EQ(state(), "given up");
  EXPECT_EQ(booked(), Strings{});
}

TEST_F(Shop, WhatIsNotInStockIsNotPutBack) {
  order.quantity = 11;
  const auto run = start();
  app.run_until_closed(run);

  EXPECT_EQ(run.status(), "failed");
  EXPECT_EQ(lamps(), 10);
  EXPECT_EQ(booked(), (Strings{"charge 456", "refund 456"}));
}

TEST_F(Shop, TriesAgainWhenTheProviderIsAway) {
  int attempts = 0;
  app.mock(charge, [&](const Order& charged) {
    if (++attempts < 3) throw std::runtime_error("the provider is away");
    return "payment-" + charged.id;
  });
  const auto run = start();
  run.signal(packed, {"eve"}, hapax::request("click-1"));
  app.run_until_closed(run);

  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(run.result().payment, "payment-456");
}

TEST_F(Shop, AnEventThatComesTwiceIsOneDelivery) {
  const hapax::CloudEvent delivery{
      .id = "evt-2", .source = "/supplier", .type = "goods.delivered", .data = hapax::to_json(Delivery{"lamp", 5})};
  EXPECT_EQ(app.publish(delivery).started.size(), 1U);
  EXPECT_EQ(app.publish(delivery).duplicates.size(), 1U);
  app.run();

  EXPECT_EQ(lamps(), 15);
}

TEST_F(Shop, OneReportStandsForTheNightsThatWereMissed) {
  const auto run = app.start(
      nightly, "night", {.scheduled_for = {}, .window = Window{"2026-03-01T02:00:00Z", "2026-03-03T02:00:00Z", 3}});
  app.run_until_closed(run);

  ASSERT_EQ(reports(database).size(), 1U);
  EXPECT_EQ(reports(database).front().day, "2026-03-03");
}

}  // namespace
}  // namespace shop
