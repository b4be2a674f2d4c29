#include "config/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace hapax {
namespace {

const std::vector<std::string> kWords{"retention", "rate_limit", "burst"};

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("retenton", kWords), "retention");
  EXPECT_EQ(nearest("rate-limit", kWords), "rate_limit");
  EXPECT_EQ(nearest("brust", kWords), "burst");
}

TEST(Nearest, DoesNotGuessWildly) {
  EXPECT_EQ(nearest("colour", kWords), std::nullopt);
  EXPECT_EQ(nearest("", kWords), std::nullopt);
  EXPECT_EQ(suggestion("colour", kWords), "");
}

TEST(Nearest, SuggestsInAHalfSentence) { EXPECT_EQ(suggestion("bursts", kWords), "; did you mean \"burst\"?"); }

}  // namespace
}  // namespace hapax
