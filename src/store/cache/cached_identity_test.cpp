#include "store/cache/cached_identity.h"

#include <gtest/gtest.h>

#include "support/describe.h"
#include "support/filled.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

CachedIdentity everything() {
  CachedIdentity cached;
  Execution& owner = cached.owner;
  owner = filled<Execution>();
  owner.status = Status::completed;
  owner.result = std::string("{\"n\":\"\\u0000\"}\0x", 17);
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
