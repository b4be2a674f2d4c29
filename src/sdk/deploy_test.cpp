// A deploy under load: workers of the first version are replaced by those of the second, which has a step more, while
// many workflows are open.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "hapax/app.h"
#include "hapax/listing.h"
#include "hapax/testing.h"
#include "hapax/worker.h"
#include "support/place.h"

namespace hapax {
namespace {

constexpr int kOrders = 1000;
constexpr Signal<> packed{"packed"};

// How often each effect happened, by the key that the outside world would get.
class World {
 public:
  void book(const TaskContext& context) {
    const std::lock_guard lock(mutex_);
    ++effects_[context.type() + " " + context.effect_key()];
  }
  std::map<std::string, int> times() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, int> times;
    for (const auto& [effect, count] : effects_) {
      times[effect.substr(0, effect.find(' '))] += 1;
      EXPECT_EQ(count, 1) << effect;
    }
    return times;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> effects_;
};

int finish(Context& ctx, int order) {
  ctx.wait(packed);
  return ctx.run<int>("ship", order);
}

int v1(Context& ctx, int order) {
  ctx.run<int>("charge", order);
  return finish(ctx, order);
}

int v2(Context& ctx, int order) {
  if (ctx.version("fraud check") == 1) ctx.run<int>("check_fraud", order);
  return v1(ctx, order);
}

int v2_without_version(Context& ctx, int order) {
  ctx.run<int>("check_fraud", order);
  return v1(ctx, order);
}

// One generation of the program, working.
struct Generation {
  Generation(const std::string& url, World& world, bool is_second)
      : app(hapax::open(url, {.log = [this](std::string_view line) { tell(line); }})) {
    const auto effect = [&world](TaskContext& context, int order) {
      world.book(context);
      return order;
    };
    app.task("charge", effect);
    app.task("ship", effect);
    if (is_second) app.task("check_fraud", effect);
    process = app.workflow("process", is_second ? v2 : v1);
    worker.emplace(app, WorkOptions{.threads = 4});
  }

  void tell(std::string_view line) {
    const std::lock_guard lock(mutex);
    told.append(line).append("\n");
  }

  std::mutex mutex;
  std::string told;  // a failure, a lost lease, a stuck workflow
  App app;
  Workflow<int, int> process{"process"};
  std::optional<Worker> worker;
};

class Deploy : public ::testing::TestWithParam<std::string> {};

TEST_P(Deploy, ReplacesTheWorkersOfAThousandOpenWorkflows) {
  Place place(GetParam());
  World world;
  auto first = std::make_optional<Generation>(place.url(), world, false);
  std::vector<WorkflowHandle<int>> runs;
  for (int i = 0; i < kOrders / 2; ++i) runs.push_back(first->process.start("order-" + std::to_string(i), i));
  // Some wait for their signal, others are on their way when the first generation ends. Clients go on meanwhile.
  for (int i = 0; i < 10; ++i) {
    while (runs[static_cast<std::size_t>(i)].steps().size() < 2) std::this_thread::yield();
  }
  const std::string history = runs[0].export_json();

  std::thread client([&, process = first->process] {
    for (int i = kOrders / 2; i < kOrders; ++i) runs.push_back(process.start("order-" + std::to_string(i), i));
  });
  first->worker.reset();
  EXPECT_EQ(first->told, "");
  Generation second(place.url(), world, true);
  client.join();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    second.process.find("order-" + std::to_string(i)).signal(packed, "packed-" + std::to_string(i));
  }
  for (int i = 0; i < kOrders; ++i) {
    EXPECT_EQ(second.process.find("order-" + std::to_string(i)).result(), i);
  }
  second.worker.reset();
  EXPECT_EQ(second.told, "");

  const auto times = world.times();
  EXPECT_EQ(times.at("charge"), kOrders);
  EXPECT_EQ(times.at("ship"), kOrders);
  EXPECT_LE(times.at("check_fraud"), kOrders);
  EXPECT_GT(times.at("check_fraud"), 0);

  testing::TestApp gate;
  auto careless = gate.workflow("process", v2_without_version);
  try {
    testing::replay(careless, history);
    ADD_FAILURE() << "the mistake is not found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "NonDeterminism") << error.what();
  }
  testing::TestApp careful_gate;
  testing::replay(careful_gate.workflow("process", v2), history);
}

INSTANTIATE_TEST_SUITE_P(Urls, Deploy, ::testing::Values("sqlite", "http"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace hapax
