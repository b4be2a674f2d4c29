#include "store/cache/redis_url.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

RedisAddress at(std::string host, std::uint16_t port = 6379) {
  RedisAddress address;
  address.host = std::move(host);
  address.port = port;
  return address;
}

std::string refusal(std::string_view url) {
  try {
    parse_redis_url(url);
  } catch (const BadRedisUrl& error) {
    return error.what();
  }
  return "";
}

TEST(RedisUrl, NamesHostPortAndDatabase) {
  EXPECT_EQ(parse_redis_url("redis://cache"), at("cache"));
  EXPECT_EQ(parse_redis_url("redis://10.0.0.1:7000/"), at("10.0.0.1", 7000));
  EXPECT_EQ(parse_redis_url("redis://[::1]:7000"), at("::1", 7000));
  EXPECT_EQ(parse_redis_url("redis://cache/3").database, 3);
}

TEST(RedisUrl, CarriesUserAndPassword) {
  const RedisAddress address = parse_redis_url("redis://app:p%40ss@cache:1");
  EXPECT_EQ(address.user, "app");
  EXPECT_EQ(address.password, "p@ss");
  EXPECT_EQ(parse_redis_url("redis://:secret@cache").password, "secret");
}

TEST(RedisUrl, NamesASocketByItsPath) { EXPECT_EQ(parse_redis_url("unix:/run/redis.sock").socket, "/run/redis.sock"); }

TEST(RedisUrl, NeverShowsThePassword) {
  EXPECT_EQ(parse_redis_url("redis://:secret@cache:1").name(), "redis://cache:1");
  EXPECT_EQ(refusal("redis://:secret@").find("secret"), std::string::npos);
  EXPECT_EQ(refusal("redis://:secret@cache:port").find("secret"), std::string::npos);
}

TEST(RedisUrl, SaysWhatIsWrongAndWhatToWrite) {
  EXPECT_NE(refusal("cache:6379").find("no Redis address; write redis://"), std::string::npos);
  EXPECT_NE(refusal("rediss://cache").find("TLS"), std::string::npos);
  EXPECT_NE(refusal("redis://").find("host is missing"), std::string::npos);
  EXPECT_NE(refusal("redis://cache:99999").find("port is no number"), std::string::npos);
  EXPECT_NE(refusal("redis://cache/x").find("database is no number"), std::string::npos);
  EXPECT_NE(refusal("redis://user@cache").find("USER:PASSWORD"), std::string::npos);
  EXPECT_NE(refusal("unix:redis.sock").find("starts with /"), std::string::npos);
  EXPECT_NE(refusal("redis://:a%zz@cache").find("%25"), std::string::npos);
}

}  // namespace
}  // namespace hapax
