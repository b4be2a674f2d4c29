#include "support/cutting_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace hapax {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void require(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

void send_at_once(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

CuttingProxy::CuttingProxy(std::uint16_t server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener_, raw, length) == 0 && ::listen(listener_, 64) == 0, "the proxy cannot listen");
  require(::getsockname(listener_, raw, &length) == 0 && ::pipe(ending_) == 0, "the proxy cannot start");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept(); });
}

CuttingProxy::~CuttingProxy() {
  ::close(ending_[1]);
  accepting_.join();
  for (std::thread& thread : serving_) thread.join();
  ::close(ending_[0]);
  ::close(listener_);
}

void CuttingProxy::cut_after(Direction direction, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  left_[0] = left_[1] = kNever;
  left_[static_cast<int>(direction)] = bytes;
  passed_[0] = passed_[1] = 0;
  has_cut_ = false;
}

void CuttingProxy::never_cut() { cut_after(Direction::to_server, kNever); }

void CuttingProxy::accept() {
  for (;;) {
    pollfd watched[2] = {{listener_, POLLIN, 0}, {ending_[0], POLLIN, 0}};
    ::poll(watched, 2, -1);
    if (watched[1].revents) return;
    const int client = ::accept(listener_, nullptr, nullptr);
    if (client < 0) continue;
    ++connections_;
    serving_.emplace_back([this, client] { serve(client); });
  }
}

// False when the connection has ended: closed by the sender, or cut.
bool CuttingProxy::forward(int from, int to, Direction direction) {
  char chunk[16384];
  const auto received = ::recv(from, chunk, sizeof chunk, 0);
  if (received <= 0) return false;
  std::int64_t allowed = received;
  {
    const std::lock_guard lock(mutex_);
    std::int64_t& left = left_[static_cast<int>(direction)];
    if (left != kNever) {
      allowed = std::min<std::int64_t>(allowed, left);
      left -= allowed;
      if (allowed < received) {
        left = kNever;
        has_cut_ = true;
      }
    }
    passed_[static_cast<int>(direction)] += allowed;
  }
  const bool sent = allowed == 0 || ::send(to, chunk, static_cast<std::size_t>(allowed), MSG_NOSIGNAL) == allowed;
  return sent && allowed == received;
}

void CuttingProxy::serve(int client) {
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(server_port_);
  bool open = ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  send_at_once(client);
  send_at_once(server);
  bool answered = true;
  const bool is_held = holds_;
  while (open) {
    pollfd watched[3] = {{client, POLLIN, 0}, {is_held ? -1 : server, POLLIN, 0}, {ending_[0], POLLIN, 0}};
    ::poll(watched, 3, -1);
    if (watched[2].revents) break;
    if (watched[1].revents && drops_ > 0) {
      --drops_;
      break;
    }
    if (watched[1].revents) {
      answered = true;
      open = forward(server, client, Direction::to_client);
    }
    if (open && watched[0].revents) {
      if (std::exchange(answered, false)) ++round_trips_;
      open = forward(client, server, Direction::to_server);
    }
  }
  ::close(server);
  ::close(client);
}

}  // namespace hapax
