#include "cli/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace hapax {
namespace {

ChildCall call(std::string command, std::string input = "") {
  std::signal(SIGPIPE, SIG_IGN);
  return {
      .command = std::move(command), .input = std::move(input), .environment = {}, .cancelled = [] { return false; }};
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

TEST(ChildProcess, SeesTheEnvironmentThatIsAdded) {
  auto asked = call("printf %s \"$HAPAX_ATTEMPT\"");
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
