#include "http/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <stdexcept>
#include <utility>

namespace hapax::http {

TestClient::TestClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket_);
    throw std::runtime_error("cannot connect");
  }
}

TestClient::TestClient(TestClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), buffer_(std::move(other.buffer_)) {}

TestClient::~TestClient() { close(); }

void TestClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the server has closed; reading shows why
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool TestClient::fill() {
  char chunk[16384];
  const auto count = ::recv(socket_, chunk, sizeof chunk, 0);
  if (count <= 0) return false;
  buffer_.append(chunk, static_cast<std::size_t>(count));
  return true;
}

std::string TestClient::rest() {
  while (fill()) {}
  return std::exchange(buffer_, {});
}

bool TestClient::at_end() { return buffer_.empty() && !fill(); }

Received TestClient::read() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return {};
  }
  Received received;
  received.status = std::stoi(buffer_.substr(9, 3));
  std::size_t at = buffer_.find("\r\n") + 2;
  while (at < end + 2) {
    const std::size_t stop = buffer_.find("\r\n", at);
    const std::size_t colon = buffer_.find(": ", at);
    std::string name = buffer_.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    received.headers[name] = buffer_.substr(colon + 2, stop - colon - 2);
    at = stop + 2;
  }
  buffer_.erase(0, end + 4);
  const std::size_t length =
      received.headers.contains("content-length") ? std::stoul(received.headers["content-length"]) : 0;
  while (buffer_.size() < length) {
    if (!fill()) return {};
  }
  received.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return received;
}

Received TestClient::call(std::string_view method, std::string_view path, std::string_view body,
                          std::string_view headers) {
  send(request_bytes(method, path, body, headers));
  return read();
}

std::string request_bytes(std::string_view method, std::string_view path, std::string_view body,
                          std::string_view headers) {
  std::string out;
  out.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n").append(headers);
  if (!body.empty()) out.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  return out.append("\r\n").append(body);
}

}  // namespace hapax::http
