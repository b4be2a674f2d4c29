// A cancel that is requested at each point of an order: what was done is undone, each effect once.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "hapax/app.h"
#include "hapax/listing.h"
#include "hapax/saga.h"
#include "hapax/testing.h"
#include "hapax/worker.h"
#include "support/place.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const char* const kPoints[] = {"before the start", "at the beginning", "during charge", "after charge",
                               "during reserve",   "after reserve",    "while waiting", "while sleeping",
                               "before ship",      "during ship",      "after ship",    "during write",
                               "during release",   "during refund"};

// An order for each point, whose workflow id it is. A turn does not know of a request that comes while it runs: the
// step that it asks for is begun all the same.
class Orders {
 public:
  explicit Orders(const App& app) : app_(app) {
    for (const std::string effect :
         {"charge", "refund", "reserve", "release", "ship", "take back", "write", "write off"}) {
      app_.task(effect, [this, effect](TaskContext& context, const std::string& order) {
        passes(order, "during " + effect);
        if (effect == "ship" && fails(order)) throw FinalError("no such street");
        const std::lock_guard lock(mutex_);
        done_[order][effect].insert(context.effect_key());
      });
    }
    app_.workflow("order", [this](Context& ctx, const std::string& order) { process(ctx, order); });
    for (const char* point : kPoints) {
      app_.start("order", point, std::string(point));
      passes(point, "before the start");
    }
  }

  AnyWorkflowHandle of(const std::string& point) { return app_.find_workflow(point); }

  // Those that wait.
  void request_cancels() {
    for (const char* point : {"while waiting", "while sleeping"}) passes(point, point);
  }

  void check(const std::string& order) {
    SCOPED_TRACE(order);
    // Quick steps within a turn are committed one by one: then the turn ends with the step before.
    const bool is_too_late = order == "during write" || (order == "after ship" && did(order, "write") == 1);
    EXPECT_EQ(of(order).status(), is_too_late ? "completed" : fails(order) ? "failed" : "cancelled");
    const std::pair<std::string, std::string> effects[] = {
        {"charge", "refund"}, {"reserve", "release"}, {"ship", "take back"}, {"write", "write off"}};
    for (const auto& [done, undone] : effects) {
      EXPECT_LE(did(order, done), 1U) << done;
      EXPECT_EQ(did(order, undone), is_too_late ? 0U : did(order, done)) << undone;
    }
    EXPECT_EQ(did(order, "charge"), order == "before the start" ? 0U : 1U);
    EXPECT_EQ(did(order, "write"), is_too_late ? 1U : 0U);
  }

 private:
  static bool fails(const std::string& order) { return order == "during release" || order == "during refund"; }

  // Code that is replayed comes by again: the same request.
  void passes(const std::string& order, const std::string& point) {
    if (point != order) return;
    std::thread([&] { of(order).request_cancel(std::string("by the customer"), request(order)); }).join();
  }

  void process(Context& ctx, const std::string& order) {
    passes(order, "at the beginning");
    Saga saga(ctx);
    ctx.run("charge", order);
    saga.undo("refund", order);
    passes(order, "after charge");
    ctx.run("reserve", order);
    saga.undo("release", order);
    passes(order, "after reserve");
    if (order == "while waiting") ctx.wait_signal("packed");
    if (order == "while sleeping") ctx.sleep(24h);
    passes(order, "before ship");
    ctx.run("ship", order);
    saga.undo("take back", order);
    passes(order, "after ship");
    ctx.run("write", order);
    saga.undo("write off", order);
  }

  std::size_t did(const std::string& order, const std::string& effect) {
    const std::lock_guard lock(mutex_);
    return done_[order][effect].size();
  }

  App app_;
  std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::set<std::string>>>
      done_;  // the effect keys that partners were given
};

TEST(CancelPoints, AreCompensatedWhenEveryTurnIsReplayedAndWhenRunsAreKept) {
  for (const bool replay : {true, false}) {
    SCOPED_TRACE(replay ? "replayed" : "kept");
    testing::TestApp app({.replay_every_turn = replay});
    Orders orders(app);
    app.run();
    orders.request_cancels();
    app.run();
    for (const char* point : kPoints) orders.check(point);
  }
}

class CancelPointsOn : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Places, CancelPointsOn, ::testing::Values("memory", "sqlite", "http"),
                         [](const auto& info) { return info.param; });

// With kept runs, quick steps run within the turns that ask for them.
TEST_P(CancelPointsOn, AreCompensatedByWorkersThatKeepRunsAndByThoseThatReplay) {
  for (const std::size_t kept : {0, 1000}) {
    SCOPED_TRACE("kept " + std::to_string(kept));
    const Place place(GetParam());
    App app = open(place.url(), {.log = [](std::string_view) {}});
    Orders orders(app);
    const Worker worker(app, {.threads = 4, .kept_workflows = kept});
    for (const char* point : {"while waiting", "while sleeping"}) {
      while (orders.of(point).steps().size() < 3) std::this_thread::yield();
    }
    orders.request_cancels();
    for (const char* point : kPoints) {
      ASSERT_TRUE(orders.of(point).wait_for(20s)) << point;
      orders.check(point);
      testing::replay(app.workflow_named<std::string, void>("order"), orders.of(point).export_json());
    }
  }
}

}  // namespace
}  // namespace hapax
