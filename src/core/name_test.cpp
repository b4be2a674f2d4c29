#include "core/name.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

TEST(Names, AreOneTo128BytesWithoutControlCharacters) {
  EXPECT_EQ(check_name("charge_customer"), std::nullopt);
  EXPECT_EQ(check_name("größe / 1 €"), std::nullopt);
  EXPECT_EQ(check_name(std::string(128, 'x')), std::nullopt);
  EXPECT_NE(check_name(std::string(129, 'x')), std::nullopt);
  EXPECT_NE(check_name(""), std::nullopt);
  EXPECT_NE(check_name("a\nb"), std::nullopt);
  EXPECT_NE(check_name("a\x7f"), std::nullopt);
  EXPECT_NE(check_name(std::string_view("a\0b", 3)), std::nullopt);
  EXPECT_NE(check_name("a\u0080b"), std::nullopt);
  EXPECT_NE(check_name("\u009f"), std::nullopt);
  EXPECT_EQ(check_name("\u00a1"), std::nullopt);
}

TEST(IdempotencyKeys, AreOneTo255BytesAndNotBlank) {
  EXPECT_EQ(check_idempotency_key("charge-order-456"), std::nullopt);
  EXPECT_EQ(check_idempotency_key(std::string(255, 'k')), std::nullopt);
  EXPECT_EQ(check_idempotency_key(" k "), std::nullopt);
  EXPECT_NE(check_idempotency_key(std::string(256, 'k')), std::nullopt);
  EXPECT_NE(check_idempotency_key(""), std::nullopt);
  EXPECT_NE(check_idempotency_key(" \t "), std::nullopt);
  for (const char* white :
       {"\u0085", "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028", "\u202f", "\u205f", "\u3000", " \u3000\n"}) {
    EXPECT_NE(check_idempotency_key(white), std::nullopt) << white;
  }
  EXPECT_EQ(check_idempotency_key("\u200b"), std::nullopt) << "a zero width space is no White_Space";
}

TEST(RequestKeys, AreAtMost200BytesAndNotBlank) {
  EXPECT_EQ(check_request_key(std::string(200, 'k')), std::nullopt);
  EXPECT_NE(check_request_key(std::string(201, 'k')), std::nullopt);
  EXPECT_NE(check_request_key(""), std::nullopt);
  EXPECT_NE(check_request_key("   "), std::nullopt);
}

TEST(Utf8, IsToldFromOtherBytes) {
  for (const char* text : {"", "ascii", "é", "€", "😀", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  }
  for (const char* text : {"\xff", "\x80", "\xc0\xaf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xe2\x82z"}) {
    EXPECT_FALSE(is_valid_utf8(text)) << text;
  }
}

}  // namespace
}  // namespace hapax
