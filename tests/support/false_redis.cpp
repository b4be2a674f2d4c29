#include "support/false_redis.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace hapax {

FalseRedis::FalseRedis(Answer answer) : answer_(std::move(answer)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&where), size) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size) != 0) {
    throw std::runtime_error("no free port to listen on");
  }
  port_ = ntohs(where.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

FalseRedis::~FalseRedis() {
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : serving_) thread.join();
  for (const int socket : sockets_) close(socket);
}

RedisAddress FalseRedis::address() const {
  RedisAddress address;
  address.host = "127.0.0.1";
  address.port = port_;
  return address;
}

void FalseRedis::accept_all() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    serving_.emplace_back([this, socket] { serve(socket); });
  }
}

void FalseRedis::serve(int socket) {
  std::array<char, 64 * 1024> piece;
  for (;;) {
    const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
    if (got <= 0) return;
    const std::string answer = answer_(std::string(piece.data(), static_cast<std::size_t>(got)));
    if (!answer.empty() && send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    ++pieces_;
  }
}

}  // namespace hapax
