#include "client/dropping_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

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

// False when the sender has closed.
bool forward(int from, int to) {
  char chunk[16384];
  const auto count = ::recv(from, chunk, sizeof chunk, 0);
  if (count <= 0) return false;
  return ::send(to, chunk, static_cast<std::size_t>(count), MSG_NOSIGNAL) == count;
}

}  // namespace

DroppingProxy::DroppingProxy(std::uint16_t server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener_, raw, length) == 0 && ::listen(listener_, 16) == 0, "the proxy cannot listen");
  require(::getsockname(listener_, raw, &length) == 0 && ::pipe(ending_) == 0, "the proxy cannot start");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept(); });
}

DroppingProxy::~DroppingProxy() {
  ::close(ending_[1]);
  accepting_.join();
  for (std::thread& thread : serving_) thread.join();
  ::close(ending_[0]);
  ::close(listener_);
}

void DroppingProxy::accept() {
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

void DroppingProxy::serve(int client) {
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(server_port_);
  bool open = ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  while (open) {
    pollfd watched[3] = {{client, POLLIN, 0}, {server, POLLIN, 0}, {ending_[0], POLLIN, 0}};
    ::poll(watched, 3, -1);
    if (watched[2].revents) break;
    if (watched[1].revents && drops_ > 0) {
      --drops_;
      break;
    }
    if (watched[1].revents) open = forward(server, client);
    if (open && watched[0].revents) open = forward(client, server);
  }
  ::close(server);
  ::close(client);
}

}  // namespace hapax
