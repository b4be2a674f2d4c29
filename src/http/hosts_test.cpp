#include "http/hosts.h"

#include <gtest/gtest.h>

namespace hapax::http {
namespace {

TEST(Hosts, LoopbackNamesAndAddressesAreAlwaysAccepted) {
  const Hosts hosts({});
  for (const char* host : {"localhost", "localhost:7373", "LocalHost.", "127.0.0.1", "127.0.0.1:7373", "10.1.2.3:80",
                           "[::1]", "[::1]:7373", "[fe80::1]:80"}) {
    EXPECT_TRUE(hosts.accept(host)) << host;
  }
}

TEST(Hosts, AForeignNameIsRefusedInEverySpelling) {
  const Hosts hosts({"hapax.example"});
  for (const char* host : {"evil.example", "evil.example:7373", "localhost.evil.example", "127.0.0.1.evil.example", "",
                           "hapax.example.evil", "[::1].evil.example", "[::1", "localhost:80@evil", "0x7f.1", "::1"}) {
    EXPECT_FALSE(hosts.accept(host)) << host;
  }
  EXPECT_TRUE(hosts.accept("Hapax.Example:443"));
}

TEST(Hosts, AStarStandsForAll) { EXPECT_TRUE(Hosts({"*"}).accept("anything.example")); }

}  // namespace
}  // namespace hapax::http
