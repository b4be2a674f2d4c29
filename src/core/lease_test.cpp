#include "core/lease.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hapax {
namespace {

TEST(LeaseToken, ComesBackFromItsText) {
  IdGenerator ids;
  for (std::int32_t attempt : {0, 1, 255, 256, 65536, 1'000'000, INT32_MAX}) {
    const LeaseToken token{ids.next(from_ms(1'769'515'200'000)), attempt, LeaseSecret::generate()};
    const std::string text = token.to_string();
    EXPECT_EQ(text.size(), 48u);
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    })) << text;
    EXPECT_EQ(LeaseToken::parse(text), token);
  }
}

TEST(LeaseToken, GarbageIsRefused) {
  const std::string good = LeaseToken{{}, 1, LeaseSecret::generate()}.to_string();
  ASSERT_TRUE(LeaseToken::parse(good));
  for (const std::string& text : {std::string(), good.substr(1), good + "A", good.substr(1) + "=", good.substr(1) + "+",
                                  good.substr(1) + " ", good.substr(1) + "\xff", std::string(48, '.')}) {
    EXPECT_EQ(LeaseToken::parse(text), std::nullopt) << text;
  }
}

TEST(LeaseToken, AnyOtherTextIsAnotherToken) {
  const LeaseToken token{{}, 1, LeaseSecret::generate()};
  const std::string text = token.to_string();
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_NE(LeaseToken::parse(changed), token) << i;
  }
}

TEST(LeaseSecret, IsNeverTheSameTwice) { EXPECT_NE(LeaseSecret::generate(), LeaseSecret::generate()); }

}  // namespace
}  // namespace hapax
