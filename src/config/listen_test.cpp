#include "config/listen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using testing::HasSubstr;

ListenAddress parsed(std::string_view text) { return std::get<ListenAddress>(parse_listen(text)); }
std::string refused(std::string_view text) { return std::get<std::string>(parse_listen(text)); }

TEST(Listen, ReadsAddressAndPort) {
  EXPECT_EQ(parsed("127.0.0.1:7373"), (ListenAddress{"127.0.0.1", 7373}));
  EXPECT_EQ(parsed("[::1]:0"), (ListenAddress{"::1", 0}));
  EXPECT_EQ(parsed("localhost:80"), (ListenAddress{"127.0.0.1", 80}));
}

TEST(Listen, KnowsWhatOtherMachinesCanReach) {
  EXPECT_TRUE(parsed("127.0.0.1:1").is_loopback());
  EXPECT_TRUE(parsed("127.8.0.1:1").is_loopback());
  EXPECT_TRUE(parsed("[::1]:1").is_loopback());
  EXPECT_FALSE(parsed("0.0.0.0:1").is_loopback());
  EXPECT_FALSE(parsed("[::]:1").is_loopback());
}

TEST(Listen, SaysWhatIsWrong) {
  EXPECT_THAT(refused("127.0.0.1"), HasSubstr("port is missing"));
  EXPECT_THAT(refused("127.0.0.1:"), HasSubstr("number from 0 to 65535"));
  EXPECT_THAT(refused("127.0.0.1:65536"), HasSubstr("number from 0 to 65535"));
  EXPECT_THAT(refused("127.0.0.1:80x"), HasSubstr("number from 0 to 65535"));
  EXPECT_THAT(refused(":7373"), HasSubstr("host is missing"));
  EXPECT_THAT(refused("example.org:7373"), HasSubstr("must be an IP address"));
  EXPECT_THAT(refused("::1:7373"), HasSubstr("IPv6 in brackets"));
  EXPECT_THAT(refused("[nonsense]:7373"), HasSubstr("not an IPv6 address"));
}

}  // namespace
}  // namespace hapax
