// A proxy between a client and a server in tests. It cuts the connection after a number of bytes, or instead of an
// answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace hapax {

class CuttingProxy {
 public:
  enum class Direction { to_server, to_client };
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit CuttingProxy(std::uint16_t server_port);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  std::uint16_t port() const { return port_; }

  // Lets that many more bytes pass in that direction, over all connections together. Then it closes the connection that
  // carries the next byte on both sides, and lets everything through again.
  void cut_after(Direction direction, std::int64_t bytes);
  bool has_cut() const { return has_cut_; }
  void never_cut();

  // Drops the next answers: the server has given them, and the client sees its connection close instead.
  void drop_answers(int count) { drops_ = count; }
  int connections() const { return connections_; }

  // On connections that begin from now on no answer arrives: the server has given it, and the client waits.
  void hold_answers(bool hold) { holds_ = hold; }

  // How often the client sent something after an answer, over all connections together.
  int round_trips() const { return round_trips_; }

  // The bytes that have passed in that direction since the last cut_after() or never_cut().
  std::int64_t passed(Direction direction) const { return passed_[static_cast<int>(direction)]; }

 private:
  void accept();
  void serve(int client);
  bool forward(int from, int to, Direction direction);

  const std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int ending_[2] = {-1, -1};  // a pipe: closing it ends everything
  std::mutex mutex_;
  std::int64_t left_[2] = {kNever, kNever};
  std::atomic<std::int64_t> passed_[2] = {0, 0};
  std::atomic<bool> has_cut_ = false, holds_ = false;
  std::atomic<int> drops_ = 0, connections_ = 0, round_trips_ = 0;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace hapax
