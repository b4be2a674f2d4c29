#include "support/fault_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
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

// Reads more bytes; false when the connection has ended.
bool receive(int socket, std::string& into) {
  char chunk[16384];
  const auto received = ::recv(socket, chunk, sizeof chunk, 0);
  if (received <= 0) return false;
  into.append(chunk, static_cast<std::size_t>(received));
  return true;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::optional<std::string> header(const std::string& head, const std::string& name) {
  const std::string all = lower(head);
  const auto at = all.find("\r\n" + name + ":");
  if (at == std::string::npos) return {};
  const auto from = all.find_first_not_of(' ', at + 3 + name.size());
  return all.substr(from, all.find("\r\n", from) - from);
}

// The end of the chunks that begin at `at`; nothing if it has not arrived yet.
std::optional<std::size_t> end_of_chunks(const std::string& message, std::size_t at) {
  for (;;) {
    const auto line = message.find("\r\n", at);
    if (line == std::string::npos) return {};
    const std::size_t size = std::stoul(message.substr(at, line - at), nullptr, 16);
    at = line + 2 + size + 2;
    if (message.size() < at) return {};
    if (size == 0) return at;
  }
}

// Takes one message off the buffer, and reads until it is complete. Nothing if the connection ends before.
std::optional<std::string> take_message(int socket, std::string& unread) {
  std::size_t head_end;
  while ((head_end = unread.find("\r\n\r\n")) == std::string::npos) {
    if (!receive(socket, unread)) return {};
  }
  const std::string head = unread.substr(0, head_end + 4);
  std::size_t end = head.size();
  if (header(head, "transfer-encoding") == "chunked") {
    std::optional<std::size_t> found;
    while (!(found = end_of_chunks(unread, head.size()))) {
      if (!receive(socket, unread)) return {};
    }
    end = *found;
  } else if (const auto length = header(head, "content-length")) {
    end += std::stoul(*length);
    while (unread.size() < end) {
      if (!receive(socket, unread)) return {};
    }
  }
  std::string message = unread.substr(0, end);
  unread.erase(0, end);
  return message;
}

std::string without_conditions(std::string message) {
  for (const char* name : {"\r\nif-match:", "\r\nif-none-match:"}) {
    const auto at = lower(message.substr(0, message.find("\r\n\r\n") + 2)).find(name);
    if (at != std::string::npos) message.erase(at, message.find("\r\n", at + 2) - at);
  }
  return message;
}

std::string error(int status, const std::string& code) {
  const std::string body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>" + code + "</Code></Error>";
  return "HTTP/1.1 " + std::to_string(status) + " " + code +
         "\r\nContent-Type: application/xml\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

FaultProxy::FaultProxy(std::uint16_t server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, raw, length) != 0 || ::listen(listener_, 256) != 0 ||
      ::getsockname(listener_, raw, &length) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept(); });
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  accepting_.join();
  std::unique_lock lock(mutex_);
  served_.wait(lock, [this] { return serving_ == 0; });
  ::close(listener_);
}

void FaultProxy::follow(Plan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  requests_ = 0;
}

std::int64_t FaultProxy::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

FaultProxy::Plan FaultProxy::at(std::int64_t number, Fault fault) {
  return [number, fault](const Request& request) { return request.number == number ? fault : Fault::none; };
}

FaultProxy::Plan FaultProxy::random(std::uint64_t seed, int percent) {
  return [percent, engine = std::make_shared<std::mt19937_64>(seed)](const Request&) {
    const auto drawn = (*engine)();
    if (static_cast<int>(drawn % 100) >= percent) return Fault::none;
    return static_cast<Fault>(1 + drawn / 100 % 5);
  };
}

void FaultProxy::accept() {
  for (;;) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (ending_) {
      if (client >= 0) ::close(client);
      return;
    }
    if (client < 0) continue;
    sockets_.insert(client);
    ++serving_;
    std::thread([this, client] { serve(client); }).detach();
  }
}

int FaultProxy::connect() {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(server_port_);
  const int on = 1;
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(server);
    return -1;
  }
  const std::lock_guard lock(mutex_);
  if (ending_) ::shutdown(server, SHUT_RDWR);
  sockets_.insert(server);
  return server;
}

void FaultProxy::close(int socket) {
  const std::lock_guard lock(mutex_);
  sockets_.erase(socket);
  ::close(socket);
}

void FaultProxy::serve(int client) {
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int server = -1;
  std::string unread;
  while (exchange(client, server, unread)) {}
  close(client);
  if (server >= 0) close(server);
  const std::lock_guard lock(mutex_);
  --serving_;
  served_.notify_all();
}

FaultProxy::Fault FaultProxy::plan(const std::string& head) {
  const auto first = head.find(' '), second = head.find(' ', first + 1);
  const std::lock_guard lock(mutex_);
  const Request request{++requests_, head.substr(0, first), head.substr(first + 1, second - first - 1)};
  return plan_ ? plan_(request) : Fault::none;
}

// One request and its answer. False when the connection should end.
bool FaultProxy::exchange(int client, int& server, std::string& unread) {
  auto request = take_message(client, unread);
  if (!request) return false;
  const Fault fault = plan(*request);
  if (fault == Fault::cut_before) return false;
  if (fault == Fault::fail_before) return send_all(client, error(500, "InternalError"));
  if (fault == Fault::slow_down) return send_all(client, error(503, "SlowDown"));
  if (fault == Fault::deny) return send_all(client, error(403, "AccessDenied"));
  if (fault == Fault::no_conditions) request = without_conditions(std::move(*request));
  if (server < 0) server = connect();
  if (server < 0) return false;
  std::string unread_answer;
  std::optional<std::string> answer;
  if (send_all(server, *request)) answer = take_message(server, unread_answer);
  if (!answer) return false;
  switch (fault) {
    case Fault::cut_after: return false;
    case Fault::fail_after: return send_all(client, error(500, "InternalError"));
    case Fault::hold_answer: return receive(client, unread) && false;
    default: return send_all(client, *answer);
  }
}

}  // namespace hapax
