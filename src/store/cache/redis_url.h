// Where a Redis is: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or unix:PATH for one on this machine.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hapax {

struct RedisAddress {
  std::string host;  // empty: `socket`
  std::uint16_t port = 6379;
  std::string socket;          // the path of a UNIX socket
  std::string user, password;  // empty: none is sent
  std::int32_t database = 0;

  bool operator==(const RedisAddress&) const = default;

  std::string name() const;  // for messages: without the password
};

// A text that is not such an address. what() says what is wrong and what to write; it never repeats the text, which may
// contain a password.
class BadRedisUrl : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

RedisAddress parse_redis_url(std::string_view url);

}  // namespace hapax
