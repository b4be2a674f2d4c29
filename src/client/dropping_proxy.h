// Stands between a client and a server in tests, and loses answers when told to.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace hapax {

class DroppingProxy {
 public:
  explicit DroppingProxy(std::uint16_t server_port);
  ~DroppingProxy();
  DroppingProxy(const DroppingProxy&) = delete;
  DroppingProxy& operator=(const DroppingProxy&) = delete;

  std::uint16_t port() const { return port_; }

  // The next so many answers: the server has given them, the client sees its connection close instead.
  void drop_answers(int count) { drops_ = count; }
  int connections() const { return connections_; }

 private:
  void accept();
  void serve(int client);

  const std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int ending_[2] = {-1, -1};  // a pipe: its closing ends everything
  std::atomic<int> drops_ = 0, connections_ = 0;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace hapax
