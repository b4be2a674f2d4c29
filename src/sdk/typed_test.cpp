// Tasks and workflows as typed values, and what a program sees of them, the same on every kind of URL.
#include <gtest/gtest.h>

#include <boost/describe.hpp>

#include <type_traits>

#include "hapax/app.h"
#include "hapax/listing.h"
#include "hapax/testing.h"
#include "hapax/trigger.h"
#include "hapax/worker.h"
#include "support/place.h"

namespace {

using namespace std::chrono_literals;

struct Order {
  int id;
  std::int64_t cents;
  std::string note = "none";
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, cents, note))

struct Packed {
  std::string by;
};
BOOST_DESCRIBE_STRUCT(Packed, (), (by))

constexpr hapax::Signal<Packed> packed{"packed"};
constexpr hapax::Signal<> stop{"stop"};

std::string charge_card(const Order& order) { return "paid " + std::to_string(order.cents) + " " + order.note; }

// In a header that several programs share.
const hapax::Task<Order, std::string> kCharge("charge");

class Typed : public ::testing::TestWithParam<std::string> {
 protected:
  hapax::Place place_{GetParam()};
  hapax::App app_ = hapax::open(place_.url(), {.log = [](std::string_view) {}});
};

TEST_P(Typed, ATaskIsAValueThatSubmitsAndKnowsItsResult) {
  auto charge = app_.task("charge", charge_card, {.queue = "payments"});
  static_assert(std::is_same_v<decltype(charge), hapax::Task<Order, std::string>>);
  const hapax::Worker worker(app_);
  hapax::Handle<std::string> handle = charge.submit({456, 99}, hapax::key("charge-456"));
  const std::string payment = handle.result();
  EXPECT_EQ(payment, "paid 99 none");
  EXPECT_FALSE(charge.submit({456, 99}, hapax::key("charge-456")).created());

  const auto by_name = app_.task_named<Order, std::string>("charge");
  EXPECT_EQ(by_name.submit({456, 99}, hapax::key("charge-456")).id(), handle.id());
  const hapax::AnyHandle by_text = app_.submit("charge", Order{456, 99}, hapax::key("charge-456"));
  EXPECT_EQ(by_text.id(), handle.id());
  EXPECT_EQ(hapax::Handle<std::string>(app_.find(handle.id())).result(), payment);
}

TEST_P(Typed, OfLambdasAndOfNamesAlone) {
  auto twice = app_.task("twice", [](int n) { return 2 * n; });
  auto ping = app_.task("ping", [](hapax::TaskContext& context) { return context.attempt(); });
  auto forget = app_.task("forget", [](const std::string&) {});
  static_assert(std::is_same_v<decltype(twice), hapax::Task<int, int>>);
  static_assert(std::is_same_v<decltype(ping), hapax::Task<void, int>>);
  static_assert(std::is_same_v<decltype(forget), hapax::Task<std::string, void>>);
  app_.task(kCharge, charge_card);
  const hapax::Worker worker(app_);
  EXPECT_EQ(twice.submit(21).result(), 42);
  EXPECT_EQ(ping.submit().result(), 1);
  forget.submit("x").result();
  EXPECT_EQ(app_.submit(kCharge, {1, 2, "gift"}).result(), "paid 2 gift");
  EXPECT_EQ(app_.submit(charge_card, Order{1, 3}).result(), "paid 3 none");
}

TEST_P(Typed, AWorkflowIsAValueToo) {
  auto charge = app_.task("charge", charge_card);
  auto child = app_.workflow("child", [](hapax::Context&, int n) { return n + 1; });
  auto process = app_.workflow("process", [=](hapax::Context& ctx, const Order& order) {
    const std::string payment = ctx.run(charge, order);
    const int next = ctx.run_workflow(child, order.id);
    const auto p = ctx.wait(packed, 24h);
    ctx.publish("packed_by", p->by);
    ctx.wait(stop);
    return payment + " " + std::to_string(next);
  });
  const hapax::Worker worker(app_);
  hapax::WorkflowHandle<std::string> run = process.start("order-456", {456, 99});
  run.signal(packed, {"eve"}, hapax::request("click-1"));
  run.signal(stop, hapax::request("click-2"));
  EXPECT_EQ(run.result(), "paid 99 none 457");
  EXPECT_EQ(run.value<std::string>("packed_by"), "eve");
  EXPECT_EQ(process.find("order-456").result(), run.result());

  const auto steps = run.steps();
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].name, "charge");
  EXPECT_EQ(steps[0].status, "completed");
  EXPECT_EQ(steps[2].kind, "wait_signal");
}

TEST_P(Typed, SignalsGoFromWorkflowToWorkflow) {
  auto waiter = app_.workflow("waiter", [](hapax::Context& ctx) { return ctx.wait(packed).by; });
  auto sender = app_.workflow("sender", [](hapax::Context& ctx) { ctx.signal("waiter-1", packed, {"bob"}); });
  const hapax::Worker worker(app_);
  const auto waiting = waiter.start("waiter-1");
  sender.start("sender-1").result();
  EXPECT_EQ(waiting.result(), "bob");
}

TEST_P(Typed, AHandlerReachesItsAppWithoutHoldingIt) {
  std::weak_ptr<int> alive;
  {
    const auto mark = std::make_shared<int>(0);
    alive = mark;
    auto next = app_.task("next", [mark](int n) { return n + 1; });
    auto first = app_.task("first", [next](hapax::TaskContext& context, int n) {
      return context.app().submit(next, n, hapax::key("next-" + std::to_string(n))).id();
    });
    const hapax::Worker worker(app_);
    const std::string id = first.submit(1).result();
    EXPECT_EQ(hapax::Handle<int>(app_.find(id)).result(), 2);
  }
  EXPECT_FALSE(alive.expired());
  app_ = hapax::open("memory:");
  EXPECT_TRUE(alive.expired());
}

TEST_P(Typed, ListingsPageByThemselves) {
  for (int i = 0; i < 450; i += 150) {
    std::vector<hapax::BatchItem> items;
    for (int n = i; n < i + 150; ++n) items.push_back(hapax::BatchItem::of(kCharge, {n, n}, {.queue = "listed"}));
    app_.submit_batch(items);
  }
  int count = 0;
  for (const hapax::TaskInfo& task : app_.tasks({.queue = "listed", .status = hapax::api::Status::pending})) {
    EXPECT_EQ(task.type, "charge");
    ++count;
  }
  EXPECT_EQ(count, 450);
  for (const hapax::TaskInfo& task : app_.tasks({.queue = "listed", .status = hapax::api::Status::failed})) {
    ADD_FAILURE() << task.id;
  }
  auto waiter = app_.workflow("waiter", [](hapax::Context& ctx) { ctx.wait(stop); });
  waiter.start("waiter-1");
  for (const hapax::WorkflowInfo& workflow : app_.workflows({.type = "waiter"})) {
    EXPECT_EQ(workflow.workflow_id, "waiter-1");
    ++count;
  }
  EXPECT_EQ(count, 451);
}

TEST_P(Typed, EventsStartWorkflowsAndSignalThem) {
  auto paid = app_.workflow("paid", [](hapax::Context&, const hapax::EventOf<Order>& event) {
    return event.id + " " + std::to_string(event.data.cents);
  });
  auto waiter = app_.workflow("waiter", [](hapax::Context& ctx) { return ctx.wait(packed).by; });
  app_.on_event<Order>("order.paid").where("/note", "gift").start(paid);
  app_.on_event<Packed>("parcel.packed").signal([](const auto& e) { return "waiter-" + e.data.by; }, packed);
  const auto waiting = waiter.start("waiter-eve");
  const hapax::Worker worker(app_);

  const hapax::Published first = app_.publish(
      {.id = "evt_1", .source = "/shop", .type = "order.paid", .data = hapax::to_json(Order{1, 99, "gift"})});
  ASSERT_EQ(first.started.size(), 1U);
  EXPECT_EQ(paid.find(first.started[0]).result(), "evt_1 99");
  const hapax::Published again = app_.publish(
      {.id = "evt_1", .source = "/shop", .type = "order.paid", .data = hapax::to_json(Order{1, 99, "gift"})});
  EXPECT_EQ(again.duplicates, first.started);
  EXPECT_TRUE(
      app_.publish({.id = "evt_2", .source = "/shop", .type = "order.paid", .data = hapax::to_json(Order{1, 1})})
          .started.empty());

  app_.publish({.id = "evt_3", .source = "/store", .type = "parcel.packed", .data = hapax::to_json(Packed{"eve"})});
  EXPECT_EQ(waiting.result(), "eve");
}

TEST_P(Typed, SchedulesAreDeclaredInCode) {
  auto report = app_.workflow("report", [](hapax::Context&, const Packed&) {});
  app_.schedule("nightly", report, {"pdf"},
                hapax::cron("0 3 * * *", "Europe/Berlin").misfire(hapax::Misfire::compress));
  app_.schedule("nightly", report, {"pdf"}, hapax::cron("0 4 * * *"));  // again: changed
  EXPECT_THROW(app_.schedule("wrong", report, {"pdf"}, hapax::cron("nightly")), hapax::Error);
}

TEST(DeclaredSchedules, AreShownAsSuchAndTheFileWins) {
  hapax::EngineOptions options;
  options.activities["backup"] = hapax::ActivitySettings::parse(
      hapax::parse_json(R"({"workflow":{"type":"backup"},"trigger":{"cron":{"expression":"0 1 * * *"}}})"));
  const auto engine = hapax::start_engine(hapax::open_store("memory:"), std::move(options));
  hapax::ServerOptions any_port;
  any_port.port = 0;
  const auto server = hapax::start_server(*engine, any_port);
  auto app = hapax::open("http://127.0.0.1:" + std::to_string(server->port()));
  auto report = app.workflow("report", [](hapax::Context&) {});
  app.schedule("nightly", report, hapax::cron("0 3 * * *"));
  app.schedule("backup", report, hapax::cron("0 4 * * *"));
  app.on_event<Packed>("packed").signal([](const auto& event) { return event.data.by; }, packed);

  auto& activities = engine->activities();
  EXPECT_TRUE(activities.find("default", "nightly")->settings.from_code);
  EXPECT_TRUE(activities.find("default", "packed-signal-packed")->settings.from_code);
  const auto backup = activities.find("default", "backup");
  EXPECT_FALSE(backup->settings.from_code);
  EXPECT_TRUE(backup->from_file);
  EXPECT_EQ(backup->settings.cron()->expression, "0 1 * * *");
}

INSTANTIATE_TEST_SUITE_P(Urls, Typed, ::testing::Values("memory", "sqlite", "http"),
                         [](const auto& parameter) { return parameter.param; });

TEST(Mock, StandsForATask) {
  hapax::testing::TestApp app;
  auto charge = app.task("charge", charge_card);
  auto process =
      app.workflow("process", [=](hapax::Context& ctx, const Order& order) { return ctx.run(charge, order); });
  app.mock(charge, [](const Order&) { return std::string("pay_1"); });
  const auto run = process.start("order-1", {1, 2});
  app.run_until_closed(run);
  EXPECT_EQ(run.result(), "pay_1");

  app.mock("another programs task", [](int n) { return n; });
  const auto other = app.submit("another programs task", 7);
  app.run_until_closed(other);
  EXPECT_EQ(other.result<int>(), 7);
}

}  // namespace
