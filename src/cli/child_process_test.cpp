#include "cli/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temp_dir.h"

namespace hapax {
namespace {

ChildCall call(std::string command, std::string input = "") {
  std::signal(SIGPIPE, SIG_IGN);
  return {.command = std::move(command),
          .input = std::move(input),
          .environment = {{"PATH", std::getenv("PATH")}},
          .cancelled = [] { return false; }};
}

// Whether a process that writes its number to the file is there, as soon as it has.
bool is_alive(const std::filesystem::path& file) {
  for (pid_t pid = 0;;) {
    if (std::ifstream(file) >> pid) return kill(pid, 0) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool ends_soon(const std::filesystem::path& file) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (is_alive(file) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return !is_alive(file);
}

TEST(ChildProcess, GetsItsInputAndGivesItsOutput) {
  const auto outcome = run_child(call("cat; echo told >&2", "hello"));
  EXPECT_EQ(outcome.output, "hello");
  EXPECT_EQ(outcome.errors, "told\n");
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(ChildProcess, TakesMoreThanAPipeHoldsBothWays) {
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(run_child(call("cat", much)).output, much);
}

TEST(ChildProcess, MayLeaveItsInputUnread) {
  EXPECT_EQ(run_child(call("exit 3", std::string(1 << 20, 'x'))).exit_code, 3);
}

TEST(ChildProcess, SeesTheEnvironmentThatItIsGivenAndNoOther) {
  setenv("HAPAX_TOKEN", "secret", 1);
  auto asked = call("printf %s \"$HAPAX_ATTEMPT$HAPAX_TOKEN\"");
  asked.environment["HAPAX_ATTEMPT"] = "2";
  EXPECT_EQ(run_child(asked).output, "2");
}

TEST(ChildProcess, KeepsTheEndOfStandardError) {
  const auto outcome = run_child(call("head -c 100000 /dev/zero | tr '\\0' a >&2; printf end >&2"));
  EXPECT_EQ(outcome.errors.size(), kKeptErrors);
  EXPECT_THAT(outcome.errors, testing::EndsWith("aaaend"));
}

TEST(ChildProcess, ASignalThatEndsItIsTold) { EXPECT_EQ(run_child(call("kill -9 $$")).signal, SIGKILL); }

TEST(ChildProcess, CancelEndsTheWholeGroup) {
  auto asked = call("sleep 1000 & wait");
  asked.cancelled = [] { return true; };
  const auto outcome = run_child(asked);
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_EQ(outcome.signal, SIGTERM);
}

TEST(ChildProcess, CancelEndsWhatHasLeftTheGroup) {
  const TempDir dir;
  const auto file = dir.path() / "pid";
  auto asked = call("setsid sh -c 'echo $$ > " + file.string() + ".new; mv " + file.string() + ".new " + file.string() +
                    "; exec sleep 1000' & wait");
  asked.grace = Duration(50);
  asked.cancelled = [&] { return std::filesystem::exists(file); };
  EXPECT_TRUE(run_child(asked).cancelled);
  EXPECT_TRUE(ends_soon(file));
}

TEST(ChildProcess, AHandlerMayCleanUpOnCancel) {
  bool ready = false;
  auto asked = call("trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.01; done");
  // The trap must be set before the signal comes: a few looks later it is.
  int looks = 0;
  asked.cancelled = [&] { return ready = ready || ++looks > 10; };
  const auto outcome = run_child(asked);
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_EQ(outcome.output, "cleaned\n");
}

TEST(ChildProcess, OneThatDoesNotListenIsKilledAfterItsGrace) {
  auto asked = call("trap '' TERM; while :; do sleep 0.01; done");
  asked.grace = Duration(50);
  int looks = 0;
  asked.cancelled = [&] { return ++looks > 10; };
  EXPECT_EQ(run_child(asked).signal, SIGKILL);
}

TEST(ChildProcess, WhatItLeftInTheBackgroundIsNotWaitedFor) {
  const auto outcome = run_child(call("sleep 5 & echo done"));
  EXPECT_EQ(outcome.output, "done\n");
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(ChildProcess, OneThatWritesWithoutEndIsKilled) {
  const auto outcome = run_child(call("exec cat /dev/zero"));
  EXPECT_TRUE(outcome.too_long);
  EXPECT_EQ(outcome.signal, SIGKILL);
}

}  // namespace
}  // namespace hapax
