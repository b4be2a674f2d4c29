// App::once(): one run for each key, and its result for everybody; embedded and on a server.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/local_engine.h"
#include "hapax/app.h"
#include "http/server.h"
#include "open/open_engine.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

class Once : public testing::TestWithParam<bool> {
 protected:
  // The URL of the file, or of a server over it.
  std::string url() {
    if (!GetParam()) return file_;
    engine_ = start_engine(open_store(file_), {});
    ServerOptions options;
    options.port = 0;
    server_ = start_server(*engine_, std::move(options));
    return "http://127.0.0.1:" + std::to_string(server_->port());
  }

  TempDir dir_;
  const std::string file_ = "sqlite:" + (dir_.path() / "app.db").string();
  std::unique_ptr<LocalEngine> engine_;
  std::unique_ptr<Server> server_;
};
INSTANTIATE_TEST_SUITE_P(Apps, Once, testing::Bool(), [](const auto& info) { return info.param ? "Remote" : "Local"; });

TEST_P(Once, ALaterCallGetsTheResult) {
  App app = open(url());
  int runs = 0;
  const auto charge = [&](const int& cents) { return ++runs, "charged " + std::to_string(cents); };
  EXPECT_EQ(app.once("order-1", charge, 5), "charged 5");
  EXPECT_EQ(app.once("order-1", charge, 5), "charged 5");
  EXPECT_EQ(app.once("order-2", charge, 6), "charged 6");
  EXPECT_EQ(runs, 2);
}

TEST_P(Once, AnotherInputUnderTheSameKeyIsAConflict) {
  App app = open(url());
  const auto same = [](const int& number) { return number; };
  app.once("k", same, 1);
  try {
    app.once("k", same, 2);
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "IdempotencyConflict");
  }
}

TEST_P(Once, CallersBesideEachOtherShareOneRun) {
  App app = open(url());
  constexpr int kCallers = 8;
  std::atomic<int> runs = 0, sum = 0;
  std::latch begun(1);
  const auto slow = [&] {
    ++runs;
    begun.wait();
    return 1;
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back([&] { sum += app.once("k", slow); });
  while (runs == 0) std::this_thread::yield();
  begun.count_down();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(sum, kCallers);
}

TEST_P(Once, WhatItThrowsIsThrownAndTheNextCallRunsAgain) {
  App app = open(url());
  int runs = 0;
  const auto fails_first = [&] {
    if (++runs == 1) throw std::invalid_argument("not yet");
    return runs;
  };
  EXPECT_THROW(app.once("k", fails_first), std::invalid_argument);
  EXPECT_EQ(app.once("k", fails_first), 2);
  EXPECT_EQ(app.once("k", fails_first), 2);
}

int twice(const int& number) { return 2 * number; }

TEST_P(Once, ADeclaredFunctionHasItsOwnType) {
  App app = open(url());
  app.task("twice", twice, {.queue = "numbers"});
  EXPECT_EQ(app.once("k", twice, 4), 8);
  EXPECT_EQ(app.submit(twice, 4, key("k")).result<int>(), 8) << "the same key of the same type";
}

TEST_P(Once, ADeadProcessIsTakenOverAsAttemptTwo) {
  const pid_t child = fork();  // before this process has threads
  if (child == 0) {
    try {
      App app = open(file_);
      app.once("k", []() -> int { _exit(9); }, nullptr, {.lease = 1s});
    } catch (const std::exception&) {}
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  App app = open(url());
  int attempt = 0;
  const auto look = [&](TaskContext& context) { return attempt = context.attempt(); };
  EXPECT_EQ(app.once("k", look, nullptr, {.lease = 1s}), 2);
}

TEST_P(Once, ALongRunKeepsItsLease) {
  App app = open(url());
  int runs = 0;
  const auto slow = [&] {
    std::this_thread::sleep_for(1500ms);  // longer than the lease, which a thread renews by the real clock
    return ++runs;
  };
  EXPECT_EQ(app.once("k", slow, nullptr, {.lease = 1s}), 1);
  EXPECT_EQ(app.once("k", slow, nullptr, {.lease = 1s}), 1);
}

}  // namespace
}  // namespace hapax
