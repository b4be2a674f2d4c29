#include "http_load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "figures.h"

namespace hapax::bench {

namespace {

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect to the server");
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// The size of the first answer in the buffer, or nothing while it is incomplete.
std::size_t answer_size(std::string_view buffer) {
  const auto head_end = buffer.find("\r\n\r\n");
  if (head_end == std::string_view::npos) return 0;
  const auto place = buffer.find("Content-Length: ");
  if (place > head_end) throw std::runtime_error("an answer without Content-Length");
  std::size_t length = 0;
  std::from_chars(buffer.data() + place + 16, buffer.data() + head_end, length);
  const std::size_t size = head_end + 4 + length;
  return buffer.size() >= size ? size : 0;
}

struct Connection {
  int fd = -1;
  std::string in;
};

}  // namespace

double post_load(std::uint16_t port, const std::string& path, std::int64_t requests, int connections, int status,
                 const std::function<std::string(std::int64_t)>& body) {
  const int poll = epoll_create1(0);
  std::vector<Connection> all(static_cast<std::size_t>(connections));
  std::int64_t sent = 0, answered = 0;
  const std::string expected = fmt::format("HTTP/1.1 {} ", status);

  const auto send_next = [&](Connection& connection) {
    if (sent == requests) return;
    const std::string payload = body(sent++);
    const std::string request = fmt::format(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", path,
        payload.size(), payload);
    if (send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      throw std::runtime_error("the server hung up");
    }
  };

  const double start = seconds_now();
  for (Connection& connection : all) {
    connection.fd = connect_to(port);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &connection;
    epoll_ctl(poll, EPOLL_CTL_ADD, connection.fd, &event);
    send_next(connection);
  }
  std::vector<epoll_event> events(all.size());
  std::vector<char> chunk(65536);
  while (answered < requests) {
    const int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()), 10'000);
    if (count <= 0) throw std::runtime_error("no answer within 10 s");
    for (int i = 0; i < count; ++i) {
      Connection& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      const ssize_t got = recv(connection.fd, chunk.data(), chunk.size(), 0);
      if (got <= 0) throw std::runtime_error("the server hung up");
      connection.in.append(chunk.data(), static_cast<std::size_t>(got));
      while (const std::size_t size = answer_size(connection.in)) {
        if (!connection.in.starts_with(expected)) throw std::runtime_error("unexpected answer: " + connection.in);
        connection.in.erase(0, size);
        ++answered;
        send_next(connection);
      }
    }
  }
  const double rate = static_cast<double>(requests) / (seconds_now() - start);
  for (const Connection& connection : all) close(connection.fd);
  close(poll);
  return rate;
}

}  // namespace hapax::bench
