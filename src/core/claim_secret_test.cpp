#include "core/claim_secret.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

TEST(ClaimSecret, IsTheSameForTheSameClaimAlone) {
  const LeaseSecret secret = secret_of_claim("store", "shop", "worker-1", "claim-1");
  EXPECT_EQ(secret, secret_of_claim("store", "shop", "worker-1", "claim-1"));
  EXPECT_NE(secret, secret_of_claim("another", "shop", "worker-1", "claim-1"));
  EXPECT_NE(secret, secret_of_claim("store", "other", "worker-1", "claim-1"));
  EXPECT_NE(secret, secret_of_claim("store", "shop", "worker-2", "claim-1"));
  EXPECT_NE(secret, secret_of_claim("store", "shop", "worker-1", "claim-2"));
  EXPECT_NE(secret_of_claim("s", "a", "bc", "d"), secret_of_claim("s", "ab", "c", "d"));
}

TEST(ClaimSecret, AloneHasTheMark) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(is_of_repeatable_claim(secret_of_claim("store", "shop", "worker", std::to_string(i))));
    const LeaseToken token{{}, 1, LeaseSecret::generate()};
    EXPECT_FALSE(is_of_repeatable_claim(token.secret));
    EXPECT_FALSE(is_of_repeatable_claim(token.next().secret));
  }
}

}  // namespace
}  // namespace hapax
