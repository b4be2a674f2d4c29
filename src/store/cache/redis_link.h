// One connection to a Redis. Every call has a deadline, however slowly the other side sends, and no length is trusted
// before the bytes have arrived.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "store/cache/redis_url.h"

namespace hapax {

// The connection is unusable: what() says why. A late answer must not be taken for the next one.
class RedisTrouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Used by one thread at a time. After a RedisTrouble it is only good for being dropped.
class RedisLink {
 public:
  using Timeout = std::chrono::microseconds;

  // Connects, gives the password, chooses the database. Finding the host's address may take longer than the timeout.
  RedisLink(const RedisAddress& address, Timeout timeout);
  ~RedisLink();
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // What is stored under each key, in their order.
  std::vector<std::optional<std::string>> get(std::span<const std::string> keys, Timeout timeout);

  // False if Redis refuses it, as one that is full or a replica does.
  bool set(const std::string& key, const std::string& value, std::chrono::milliseconds expires_in, Timeout timeout);

 private:
  // Of the kinds of answers, those that the commands used here can have.
  struct Reply {
    enum class Kind : std::uint8_t { status, error, text, nothing, list };

    Kind kind = Kind::nothing;
    std::string text;
    std::vector<Reply> items;  // of a list
  };
  using Instant = std::chrono::steady_clock::time_point;

  void connect_to(const RedisAddress& address, Instant end);
  bool connect_socket(int family, const void* where, unsigned length, Instant end);
  Reply ask(std::span<const std::string_view> words, Timeout timeout);
  void expect_ok(std::span<const std::string_view> words, Timeout timeout);
  void wait_for(short events, Instant end);

  Reply read_reply(Instant end, bool may_nest);
  std::string read_line(Instant end);
  std::string read_bytes(std::size_t count, Instant end);
  void receive(Instant end);

  int socket_ = -1;
  std::string received_;        // and not read yet, from
  std::size_t read_up_to_ = 0;  // here on
};

}  // namespace hapax
