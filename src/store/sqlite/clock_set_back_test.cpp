// The machine's clock ran ahead by a day and was set right: what was counted by it is counted anew.
#include <gtest/gtest.h>

#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_store.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

class ClockSetBack : public testing::Test {
 protected:
  void SetUp() override {
    store_ = open_sqlite_store({.path = path_}, clock_);
    store_->sweep(100);
    clock_.advance(24h);
  }

  void set_clock_right() {
    clock_.advance(-24h);
    store_->sweep(100);
  }

  void submit(const Submission& submission) { store_->submit(std::span(&submission, 1)); }
  std::vector<Execution> claim(Duration lease = 60s) {
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {"work"};
    request.limit = 10;
    request.lease = lease;
    request.secret = test_secret(++secrets_);
    return store_->claim(std::span(&request, 1)).at(0).executions;
  }
  Execution find(std::uint64_t id) { return store_->find("default", test_id(id)).value(); }

  TempDir directory_ = TempDir::in_memory_if_possible();
  const std::string path_ = directory_.file("hapax.db");
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::uint64_t secrets_ = 0;
};

TEST_F(ClockSetBack, ALeaseIsNeverLongerThanItWasAskedFor) {
  submit(Task().id(test_id(1)));
  ASSERT_EQ(claim(60s).size(), 1u);
  set_clock_right();
  EXPECT_EQ(find(1).lease_expires_at, clock_.now() + 60s);
  clock_.advance(60s);
  EXPECT_EQ(store_->sweep(100).effects.ready.size(), 1u);
  EXPECT_EQ(claim().size(), 1u);
}

TEST_F(ClockSetBack, AHeartbeatOfTheWrongTimeHoldsNoLongerThanItsLease) {
  clock_.advance(-24h);
  submit(Task().id(test_id(1)));
  const Extension extension{token_of(claim(60s).at(0)), 30s};
  clock_.advance(24h);
  ASSERT_TRUE(store_->extend(std::span(&extension, 1)).at(0).ok);
  set_clock_right();
  EXPECT_EQ(find(1).lease_expires_at, clock_.now() + 30s);
}

TEST_F(ClockSetBack, AnAttemptHasItsTimeoutAndNoMore) {
  Submission submission = Task().id(test_id(1));
  submission.execution.timeout = 10s;
  submit(submission);
  claim(60s);
  set_clock_right();
  EXPECT_EQ(find(1).attempt_ends_by, clock_.now() + 10s);
}

TEST_F(ClockSetBack, WhatWasSubmittedIsClaimableAtOnceOrAfterItsDelay) {
  submit(Task().id(test_id(1)));
  submit(Task().id(test_id(2)).delay(10s));
  clock_.advance(-24h);
  const SweepOutcome swept = store_->sweep(100);
  EXPECT_EQ(swept.effects.ready.size(), 2u);
  ASSERT_EQ(claim().size(), 1u);
  clock_.advance(10s);
  EXPECT_EQ(claim().size(), 1u);
}

TEST_F(ClockSetBack, ARunAtThatTheCallerNamedStays) {
  Submission submission = Task().id(test_id(1));
  submission.run_at = clock_.now() + 1h;
  submit(submission);
  set_clock_right();
  EXPECT_EQ(find(1).run_at, clock_.now() + 25h);
}

TEST_F(ClockSetBack, ABackOffIsNoLongerThanItWas) {
  submit(Task().id(test_id(1)));
  const Report report{token_of(claim().at(0)), Report::Failed{{"Oops", "no"}, true}};
  store_->finish(std::span(&report, 1));
  const Duration backoff = find(1).run_at - clock_.now();
  set_clock_right();
  EXPECT_EQ(find(1).run_at, clock_.now() + backoff);
}

TEST_F(ClockSetBack, ASweepThatFailedLeavesItToTheNext) {
  submit(Task().id(test_id(1)).delay(10s));
  submit(Task().id(test_id(2)));
  ASSERT_EQ(claim(60s).size(), 1u);
  const auto set_secret = [&](const std::string& secret) {
    sqlite::Connection connection({.path = path_});
    connection.exec(("UPDATE hapax_executions SET lease_secret = " + secret + " WHERE status = 1").c_str());
  };
  const std::string secret = "zeroblob(" + std::to_string(LeaseSecret().bytes.size()) + ")";
  set_secret("x'00'");  // which cannot be read
  clock_.advance(-24h);
  EXPECT_THROW(store_->sweep(100), Failure);
  set_secret(secret);
  store_->sweep(100);
  EXPECT_EQ(find(1).run_at, clock_.now() + 10s);
}

TEST_F(ClockSetBack, ANewProcessLooksAtWhatTheOldOneLeft) {
  submit(Task().id(test_id(1)));
  clock_.advance(-24h);
  store_ = open_sqlite_store({.path = path_}, clock_);
  store_->sweep(100);
  EXPECT_EQ(claim().size(), 1u);
}

TEST_F(ClockSetBack, TimesToComeAreFound) {
  submit(Task().id(test_id(1)));
  const Time submitted_at = clock_.now();
  clock_.advance(-24h);
  const StampsAhead ahead = find_stamps_ahead(path_, clock_.now());
  EXPECT_EQ(ahead.executions, 1);
  EXPECT_EQ(ahead.latest, submitted_at);
  EXPECT_EQ(find_stamps_ahead(path_, submitted_at).executions, 0);
}

}  // namespace
}  // namespace hapax
