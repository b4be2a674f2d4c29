// A proxy between an HTTP client and a server in tests: counts the requests, and applies a plan to each.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace hapax {

class FaultProxy {
 public:
  enum class Fault : std::uint8_t {
    none,
    cut_before,    // the connection breaks before the server gets the request
    cut_after,     // the server has done it, the connection breaks instead of the answer
    fail_before,   // 500 before the server gets the request
    fail_after,    // the server has done it, the answer is 500
    slow_down,     // 503 SlowDown before the server gets the request
    hold_answer,   // the server has done it, the answer never arrives
    deny,          // 403 AccessDenied
    no_conditions  // done by a server that ignores If-Match and If-None-Match
  };

  struct Request {
    std::int64_t number = 0;  // from 1
    std::string method;
    std::string target;  // path and query
  };

  // Called for one request at a time.
  using Plan = std::function<Fault(const Request&)>;

  explicit FaultProxy(std::uint16_t server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const { return port_; }

  // From now on; the next request is number 1. An empty one lets everything through.
  void follow(Plan plan);
  std::int64_t requests() const;

  // That fault for the n-th request.
  static Plan at(std::int64_t number, Fault fault);
  // One of the first five, at random, for that many requests of a hundred. The same seed gives the same plan.
  static Plan random(std::uint64_t seed, int percent);

 private:
  void accept();
  void serve(int client);
  bool exchange(int client, int& server, std::string& unread);
  Fault plan(const std::string& head);
  int connect();
  void close(int socket);

  const std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable served_;
  Plan plan_;
  std::int64_t requests_ = 0;
  std::set<int> sockets_;
  int serving_ = 0;
  bool ending_ = false;
  std::thread accepting_;
};

}  // namespace hapax
