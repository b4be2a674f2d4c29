#include "core/ledger.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);
constexpr Duration kRetention = 1h;

Execution owner_in(Status status) {
  Execution owner;
  owner.created_at = kNoon;
  owner.status = status;
  if (is_closed(status)) owner.finished_at = kNoon + 10min;
  return owner;
}

LedgerEntry entry(std::optional<Duration> ttl = std::nullopt) {
  LedgerEntry entry;
  entry.created_at = kNoon;
  if (ttl) entry.expires_at = kNoon + *ttl;
  return entry;
}

TEST(Ledger, AnActiveOwnerAlwaysHoldsItsIdentity) {
  for (Status status : {Status::pending, Status::running, Status::suspended}) {
    const Execution owner = owner_in(status);
    EXPECT_EQ(dies_at(entry(), &owner, kRetention), std::nullopt);
    EXPECT_EQ(dies_at(entry(1s), &owner, kRetention), kNoon + 1s);
    EXPECT_TRUE(is_live(entry(1s), &owner, 0ms, kNoon + 24h * 365));
  }
}

TEST(Ledger, WithoutATtlTheEntryLivesUntilTheOwnersRetentionEnds) {
  for (Status status : {Status::completed, Status::failed, Status::cancelled, Status::timed_out}) {
    const Execution owner = owner_in(status);
    EXPECT_EQ(dies_at(entry(), &owner, kRetention), kNoon + 10min + kRetention);
    EXPECT_TRUE(is_live(entry(), &owner, kRetention, kNoon + 70min - 1ms));
    EXPECT_FALSE(is_live(entry(), &owner, kRetention, kNoon + 70min));
  }
}

TEST(Ledger, ATtlCountsFromCreationWhetherShorterOrLongerThanRetention) {
  const Execution owner = owner_in(Status::completed);
  EXPECT_EQ(dies_at(entry(20min), &owner, kRetention), kNoon + 20min);
  EXPECT_FALSE(is_live(entry(20min), &owner, kRetention, kNoon + 20min));
  EXPECT_TRUE(is_live(entry(24h), &owner, kRetention, kNoon + 24h - 1ms));
  EXPECT_FALSE(is_live(entry(24h), &owner, kRetention, kNoon + 24h));
}

TEST(Ledger, ATtlOutlivesAPurgedOwner) {
  EXPECT_TRUE(is_live(entry(24h), nullptr, kRetention, kNoon + 23h));
  EXPECT_FALSE(is_live(entry(24h), nullptr, kRetention, kNoon + 24h));
}

TEST(Ledger, APurgedOwnerWithoutATtlHoldsNothing) { EXPECT_FALSE(is_live(entry(), nullptr, kRetention, kNoon)); }

TEST(Ledger, ZeroRetentionFreesTheKeyAsTheOwnerCloses) {
  const Execution owner = owner_in(Status::completed);
  EXPECT_FALSE(is_live(entry(), &owner, 0ms, *owner.finished_at));
}

}  // namespace
}  // namespace hapax
