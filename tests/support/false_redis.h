// Listens where a Redis is expected, and is not one: it sends what the test tells it to, byte by byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/cache/redis_url.h"

namespace hapax {

class FalseRedis {
 public:
  // What it sends for what it received: once per piece that arrives. Nothing: it stays silent.
  using Answer = std::function<std::string(const std::string& received)>;

  explicit FalseRedis(Answer answer);
  ~FalseRedis();
  FalseRedis(const FalseRedis&) = delete;
  FalseRedis& operator=(const FalseRedis&) = delete;

  RedisAddress address() const;           // on TCP, a free port of this machine
  int pieces() const { return pieces_; }  // answered so far

 private:
  void accept_all();
  void serve(int socket);

  const Answer answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> pieces_ = 0;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace hapax
