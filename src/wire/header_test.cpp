#include "wire/header.h"

#include <gtest/gtest.h>

namespace hapax::wire {
namespace {

TEST(KeyHeader, AQuotedKeyIsTheKeyWithin) {
  EXPECT_EQ(read_key_header("abc"), "abc");
  EXPECT_EQ(read_key_header(R"("abc")"), "abc");
  EXPECT_EQ(read_key_header(R"("a\"b\\c")"), R"(a"b\c)");
  EXPECT_EQ(read_key_header(R"("")"), "");
  EXPECT_EQ(read_key_header(R"(a"b")"), R"(a"b")") << "bare: it does not begin with a quote";
}

TEST(KeyHeader, AMalformedStringIsNoKey) {
  for (const char* header : {R"(")", R"("abc)", R"("a"b")", R"("a\b")", R"("a\")", R"("abc"x)", R"("abc";v=1)",
                             "\"a\tb\"", R"("abc" "def")"}) {
    EXPECT_EQ(read_key_header(header), std::nullopt) << header;
  }
}

TEST(KeyHeader, EveryKeyHasAForm) {
  for (const char* key : {"abc", "\"abc\"", "\"", "\\", "a\\b", " abc ", "\"\u00fc\"", "\u00fc", "a\"b"}) {
    EXPECT_EQ(read_key_header(write_key_header(key)), key);
  }
  EXPECT_EQ(write_key_header("order-456"), "order-456");
}

TEST(PercentEncoding, KeepsOnlyWhatNeedsNoEncoding) {
  EXPECT_EQ(percent_encode("a/b \u00fc-._~"), "a%2Fb%20%C3%BC-._~");
}

}  // namespace
}  // namespace hapax::wire
