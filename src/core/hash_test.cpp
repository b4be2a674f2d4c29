#include "core/hash.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

std::string hash_of(std::string_view bytes) { return InputHash{sha256(bytes)}.to_string(); }

TEST(Sha256, MatchesTheKnownVectors) {
  EXPECT_EQ(hash_of(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of(std::string(1'000'000, 'a')),
            "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(HashText, IsReadWithAndWithoutItsPrefix) {
  const InputHash hash{sha256("abc")};
  const std::string text = hash.to_string();
  EXPECT_EQ(InputHash::parse(text), hash);
  EXPECT_EQ(InputHash::parse(text.substr(7)), hash);
}

TEST(HashText, GarbageIsRefused) {
  const std::string digits(64, 'a');
  EXPECT_TRUE(IdentityHash::parse(digits));
  for (const std::string& text :
       {std::string(), std::string("sha256:"), digits.substr(1), digits + "a", "sha1:" + digits,
        "sha256:sha256:" + digits, digits.substr(1) + "g", "SHA256:" + digits}) {
    EXPECT_EQ(IdentityHash::parse(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hapax
