#include "http/compression.h"

#include <gtest/gtest.h>

#include "http/error.h"

namespace hapax::http {
namespace {

constexpr std::size_t kLimit = 100'000;

std::string text_of(std::size_t size) {
  std::string text;
  while (text.size() < size) text += "line " + std::to_string(text.size()) + "\n";
  text.resize(size);
  return text;
}

int status_of_decoding(const std::string& body, std::string_view encoding, std::size_t limit = kLimit) {
  try {
    decode_body(body, encoding, limit);
    return 200;
  } catch (const RequestError& error) {
    return error.response().status;
  }
}

TEST(Compression, CompressedBodiesRoundTrip) {
  for (const Coding coding : {Coding::gzip, Coding::deflate}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1024}, kLimit}) {
      const std::string text = text_of(size);
      EXPECT_EQ(decode_body(compress(text, coding), to_string(coding), kLimit), text) << size;
    }
  }
  EXPECT_LT(compress(text_of(kLimit), Coding::gzip).size(), kLimit / 2);
}

TEST(Compression, ABodyWithoutCodingIsUnchanged) {
  EXPECT_EQ(decode_body("{}", "", kLimit), "{}");
  EXPECT_EQ(decode_body("{}", "Identity", kLimit), "{}");
  EXPECT_EQ(decode_body("", "gzip", kLimit), "");
  EXPECT_EQ(decode_body(compress("{}", Coding::gzip), "X-GZIP", kLimit), "{}");
}

TEST(Compression, TheLimitCountsDecompressedBytes) {
  const std::string bomb = compress(std::string(50 * kLimit, ' '), Coding::gzip);
  ASSERT_LT(bomb.size(), kLimit);
  EXPECT_EQ(status_of_decoding(bomb, "gzip"), 413);
  EXPECT_EQ(status_of_decoding(compress(std::string(kLimit, ' '), Coding::gzip), "gzip"), 200);
  EXPECT_EQ(status_of_decoding(compress(std::string(kLimit + 1, ' '), Coding::gzip), "gzip"), 413);
}

TEST(Compression, MembersOfGzipAreOneBody) {
  const std::string text = text_of(5000);
  const std::string one = compress(text.substr(0, 3000), Coding::gzip), two = compress(text.substr(3000), Coding::gzip);
  EXPECT_EQ(decode_body(one + two, "gzip", kLimit), text);
  EXPECT_EQ(decode_body(one + compress("", Coding::gzip) + two, "gzip", text.size()), text);
  EXPECT_EQ(status_of_decoding(one + two.substr(0, two.size() - 1), "gzip"), 400);
  const std::string half = compress(std::string(kLimit / 2 + 1, ' '), Coding::gzip);
  EXPECT_EQ(status_of_decoding(half + half, "gzip"), 413);
  EXPECT_EQ(status_of_decoding(compress("{}", Coding::deflate) + compress("{}", Coding::deflate), "deflate"), 400);
}

TEST(Compression, UndecodableBodiesAreRefused) {
  const std::string whole = compress(text_of(5000), Coding::gzip);
  EXPECT_EQ(status_of_decoding(whole, "br"), 415);
  EXPECT_EQ(status_of_decoding(whole, "gzip, gzip"), 415);
  EXPECT_EQ(status_of_decoding("{}", "gzip"), 400);
  EXPECT_EQ(status_of_decoding(whole, "deflate"), 400);
  EXPECT_EQ(status_of_decoding(whole.substr(0, whole.size() / 2), "gzip"), 400);
  EXPECT_EQ(status_of_decoding(whole.substr(0, whole.size() - 1), "gzip"), 400);
  EXPECT_EQ(status_of_decoding(whole + "x", "gzip"), 400);
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_EQ(status_of_decoding(damaged, "gzip"), 400);
}

}  // namespace
}  // namespace hapax::http
