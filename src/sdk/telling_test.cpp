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
  Log log_;
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

TEST_F(Telling, OfATypeThatNobodyHereKnows) {
  for (int i = 0; i < 300; ++i) app_.task("known-" + std::to_string(i), [] {});  // more than a claim may name
  app_.submit("unknown", 1);
  const hapax::Worker worker(app_);
  EXPECT_NE(log_.wait_for("unknown").find("has no task 'unknown' declared"), std::string::npos);
}

TEST_F(Telling, OfAStuckWorkflow) {
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
}

TEST_F(Telling, OfALostLease) {
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
}

TEST(TellingOfAServer, ThatIsAwayAndBack) {
  auto place = std::make_unique<hapax::Place>("http");
  Log log;
  auto app = hapax::open(place->url(), {.log = [&](std::string_view line) { log.add(line); }});
  app.task("known", [] {});
  const hapax::Worker worker(app, {.until_idle_for = 60s});
  const auto port = place->port();
  place.reset();
  EXPECT_NE(log.wait_for("is away"), "");
  hapax::Place again("http", port);
  EXPECT_NE(log.wait_for("is back after"), "");
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
  // Each second; a program that only submits fires nothing.
  hapax::TempDir dir;
  const std::string url = "sqlite:" + (dir.path() / "app.db").string();
  auto submits = hapax::open(url);
  auto tick = submits.task_named<void, void>("tick");
  submits.schedule("ticks", tick, hapax::cron("* * * * * *"));
  std::this_thread::sleep_for(2500ms);
  for (const hapax::WorkflowInfo& run : submits.workflows({})) ADD_FAILURE() << run.workflow_id;

  auto works = hapax::open(url, {.schedules = hapax::Schedules::always});
  bool fired = false;
  while (!fired) {
    for (const hapax::WorkflowInfo& run : submits.workflows({})) fired = !run.workflow_id.empty();
  }
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
