// What a worker tells: lines of the log, and observers.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>

#include "hapax/app.h"
#include "hapax/listing.h"
#include "hapax/trigger.h"
#include "hapax/worker.h"
#include "support/manual_clock.h"
#include "support/place.h"
#include "support/temp_dir.h"

namespace {

using namespace std::chrono_literals;

class Log {
 public:
  void add(std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
    added_.notify_all();
  }

  // The first line with these words, once there is one.
  std::string wait_for(const std::string& words) {
    std::unique_lock lock(mutex_);
    std::string found;
    added_.wait_for(lock, 20s, [&] {
      for (const std::string& line : lines_) {
        if (line.find(words) != std::string::npos) found = line;
      }
      return !found.empty();
    });
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::string> lines_;
};

class Telling : public ::testing::Test {
 protected:
  // What an observer is given, in words.
  template <class Event>
  std::function<void(const Event&)> noting(std::string (*words)(const Event&)) {
    return [this, words](const Event& event) { observed_.add(words(event)); };
  }

  Log log_, observed_;
  hapax::App app_ = hapax::open("memory:", {.log = [this](std::string_view line) { log_.add(line); }});
};

TEST_F(Telling, OfAFailedAttempt) {
  std::atomic<int> observed = 0;
  app_.observe({.attempt_failed = [&](const hapax::AttemptFailed& attempt) { observed += attempt.attempt; }});
  auto task = app_.task("charge", [](int) -> int { throw hapax::FinalError("declined\nby the bank"); });
  const hapax::Worker worker(app_);
  const auto handle = task.submit(1);
  EXPECT_EQ(log_.wait_for("failed"),
            "hapax: task 'charge' " + handle.id() + ": attempt 1 failed for good: FinalError: declined by the bank");
  EXPECT_THROW(handle.result(), hapax::TaskFailed);
  EXPECT_EQ(observed, 1);
}

TEST_F(Telling, OfACompletedAttempt) {
  app_.observe({.attempt_completed =
                    noting<hapax::AttemptCompleted>([](const auto& attempt) { return "completed " + attempt.type; })});
  auto task = app_.task("charge", [] {});
  const hapax::Worker worker(app_);
  task.submit().result();
  EXPECT_EQ(observed_.wait_for("completed"), "completed charge");
}

TEST_F(Telling, OfATypeThatNobodyHereKnows) {
  app_.observe({.unknown_type = noting<hapax::UnknownType>([](const auto& unknown) { return "no " + unknown.type; })});
  for (int i = 0; i < 300; ++i) app_.task("known-" + std::to_string(i), [] {});  // more than a claim may name
  app_.submit("unknown", 1);
  const hapax::Worker worker(app_);
  EXPECT_NE(log_.wait_for("unknown").find("has no task 'unknown' declared"), std::string::npos);
  EXPECT_EQ(observed_.wait_for("no "), "no unknown");
}

TEST_F(Telling, OfAStuckWorkflow) {
  app_.observe({.stuck = noting<hapax::WorkflowStuck>([](const auto& stuck) {
                  return stuck.workflow_id + " " + stuck.type + " " + stuck.error_type + ": " + stuck.message;
                })});
  app_.task("a", [] {});
  std::atomic<bool> changed = false;
  auto flow = app_.workflow("flow", [&](hapax::Context& ctx) {
    if (changed) ctx.run("b");
    ctx.wait_signal("go");
  });
  const auto run = flow.start("flow-1");
  {
    const hapax::Worker worker(app_);
    while (run.steps().empty()) std::this_thread::yield();
  }
  changed = true;
  run.signal("go", nullptr, "go");
  const hapax::Worker worker(app_);
  EXPECT_EQ(log_.wait_for("stuck"),
            "hapax: workflow 'flow-1' (flow) is stuck: NonDeterminism: step 1: expected wait_signal 'go', found task "
            "'b'; it goes on with a worker whose code fits");
  EXPECT_EQ(observed_.wait_for("flow-1"),
            "flow-1 flow NonDeterminism: step 1: expected wait_signal 'go', found task 'b'");
}

TEST_F(Telling, OfALostLease) {
  app_.observe({.lease_lost = noting<hapax::LeaseLost>([](const auto& lost) { return "lost " + lost.type; })});
  std::latch begun(1);
  auto task = app_.task("slow", [&](hapax::TaskContext& context) {
    begun.count_down();
    while (!context.cancel_requested()) std::this_thread::sleep_for(5ms);
  });
  app_.configure_queue("default", {.cancel_grace = 1ms});
  const hapax::Worker worker(app_, {.lease = 3s});
  const auto handle = task.submit({.max_attempts = 1});
  begun.wait();
  handle.cancel("c");
  EXPECT_NE(log_.wait_for("lease of attempt 1 is lost"), "");
  EXPECT_EQ(observed_.wait_for("lost"), "lost slow");
}

TEST(TellingOfAServer, ThatIsAwayAndBack) {
  auto place = std::make_unique<hapax::Place>("http");
  Log log, observed;
  auto app = hapax::open(place->url(), {.log = [&](std::string_view line) { log.add(line); }});
  app.observe({.server_away = [&](const hapax::ServerAway& away) { observed.add("away: " + away.error); },
               .server_back = [&](const hapax::ServerBack&) { observed.add("back"); }});
  app.task("known", [] {});
  const hapax::Worker worker(app, {.until_idle_for = 60s});
  const auto port = place->port();
  place.reset();
  EXPECT_NE(log.wait_for("is away"), "");
  hapax::Place again("http", port);
  EXPECT_NE(log.wait_for("is back after"), "");
  EXPECT_NE(observed.wait_for("away: "), "");
  EXPECT_EQ(observed.wait_for("back"), "back");
}

TEST(OwnWorker, WorksUntilItGoesOutOfScope) {
  auto app = hapax::open("memory:");
  auto twice = app.task("twice", [](int n) { return 2 * n; });
  {
    const hapax::Worker worker(app);
    EXPECT_EQ(twice.submit(2).result(), 4);
    EXPECT_TRUE(worker.is_working());
  }
  EXPECT_FALSE(twice.submit(3).wait_for(50ms));
  hapax::Worker next(app, {.until_idle_for = 50ms});
  while (next.is_working()) std::this_thread::yield();
  next.stop();
  EXPECT_THROW(hapax::Worker(app, {.threads = 0}), hapax::Error);
}

TEST(OwnWorker, SchedulesFireOnlyWhileAWorkerWorks) {
  const hapax::TempDir dir;
  const std::string url = "sqlite:" + dir.file("app.db");
  {
    const hapax::ManualClock months_ago;
    hapax::OpenStoreOptions options;
    options.clock = &months_ago;
    const auto engine = hapax::start_engine(hapax::open_store(url, options), {});
    engine->activities().put("default", "monthly", hapax::ActivitySettings::parse(hapax::parse_json(R"({
        "workflow": {"type": "tick"},
        "trigger": {"cron": {"expression": "0 0 1 * *", "misfire_policy": "compress"}}})")));
  }
  auto app = hapax::open(url);
  auto tick = app.workflow("tick", [](hapax::Context&) {});
  const auto has_fired = [&] {
    for (const hapax::WorkflowInfo& run : app.workflows({})) return !run.workflow_id.empty();
    return false;
  };
  EXPECT_FALSE(app.submit("nobody", 1).wait_for(100ms));
  EXPECT_FALSE(has_fired());  // a program that only submits fires nothing

  const hapax::Worker worker(app);
  while (!has_fired()) std::this_thread::yield();
}

TEST(OpenOptions, ReadTheConfigurationFileThatTheyName) {
  const hapax::TempDir dir;
  const std::string file = (dir.path() / "hapax.toml").string();
  std::ofstream(file) << "[types.charge]\nidentity = \"strict\"\n";
  auto app = hapax::open("memory:", {.config = file});
  EXPECT_TRUE(app.submit("charge", 1).created());
  EXPECT_FALSE(app.submit("charge", 1).created());
  EXPECT_TRUE(hapax::open("memory:").submit("charge", 1).created());

  std::ofstream(file) << "[types.charge]\nidentiy = \"strict\"\n";
  try {
    hapax::open("memory:", {.config = file});
    ADD_FAILURE() << "a wrong key is taken";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "InvalidRequest");
    EXPECT_NE(std::string(error.what()).find("identiy"), std::string::npos) << error.what();
  }
}

}  // namespace
