#include "store/cache/cached_identity.h"

#include <gtest/gtest.h>

#include "support/describe.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

CachedIdentity everything() {
  CachedIdentity cached;
  Execution& owner = cached.owner;
  owner = Task("charge").queue("payments").key("order-1").input("{\"a\":1}").submission().execution;
  owner.priority = -3;
  owner.concurrency_key = "customer-7";
  owner.max_attempts = 9;
  owner.retry = {5ms, 1.5, 7ms};
  owner.timeout = 11ms;
  owner.deadline_at = from_ms(1'767'225'699'999);
  owner.created_at = from_ms(1'767'225'600'001);
  owner.status = Status::completed;
  owner.run_at = from_ms(1'767'225'600'002);
  owner.attempt = 2;
  owner.attempt_limit = 4;
  owner.started_at = from_ms(1'767'225'600'003);
  owner.finished_at = from_ms(1'767'225'600'004);
  owner.cancel_requested_at = from_ms(1'767'225'600'005);
  owner.cancel_by = from_ms(1'767'225'600'006);
  owner.result = std::string("{\"n\":\"\\u0000\"}\0x", 17);
  owner.error = AttemptError{"Declined", "no funds"};
  owner.failed_attempts.push_back({1, "w", from_ms(1), from_ms(2), {"E", "m"}, test_secret(3), true});
  owner.worker = "worker-1";
  owner.lease_secret = test_secret(4);
  owner.lease_expires_at = from_ms(5);
  owner.attempt_ends_by = from_ms(6);
  cached.entry.identity = *owner.identity;
  cached.entry.name_space = owner.name_space;
  cached.entry.owner = owner.id;
  cached.entry.input_hash = owner.input_hash;
  cached.entry.created_at = owner.created_at;
  cached.entry.expires_at = from_ms(1'767'225'888'888);
  return cached;
}

IdentityHash hash_of(const CachedIdentity& cached) { return cached.entry.identity.hash; }

TEST(CachedIdentity, IsReadAsItWasWritten) {
  const CachedIdentity cached = everything();
  EXPECT_EQ(read_cached(write_cached(cached), hash_of(cached)), cached);
}

TEST(CachedIdentity, IsReadAsItWasWrittenWhereMostIsAbsent) {
  CachedIdentity cached;
  cached.owner.status = Status::completed;
  cached.owner.finished_at = from_ms(1);
  EXPECT_EQ(read_cached(write_cached(cached), hash_of(cached)), cached);
}

TEST(CachedIdentity, OfAnotherIdentityIsNothing) {
  EXPECT_FALSE(read_cached(write_cached(everything()), key_hash("charge", "order-2")));
}

TEST(CachedIdentity, CutAnywhereIsNothing) {
  const CachedIdentity cached = everything();
  const std::string text = write_cached(cached);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(read_cached(std::string_view(text).substr(0, length), hash_of(cached))) << length;
  }
}

TEST(CachedIdentity, WithAnyByteChangedIsNothing) {
  const CachedIdentity cached = everything();
  const std::string text = write_cached(cached);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(read_cached(changed, hash_of(cached))) << i;
  }
}

TEST(CachedIdentity, OfAnOwnerThatIsNotCompletedIsNothing) {
  CachedIdentity cached = everything();
  cached.owner.status = Status::failed;
  EXPECT_FALSE(read_cached(write_cached(cached), hash_of(cached)));
}

}  // namespace
}  // namespace hapax
