// A server in tests that gives the answers it was told to, one connection each, and is gone after the last. Told of
// none, it takes connections and says nothing.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hapax {

class CannedServer {
 public:
  // The text of an answer, or nothing: then the connection ends instead.
  using Answers = std::vector<std::optional<std::string>>;

  explicit CannedServer(Answers answers) : answers_(std::move(answers)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    ::listen(listener_, 16);
    serving_ = std::thread([this] { serve(); });
  }
  ~CannedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    serving_.join();
    ::close(listener_);
  }
  CannedServer(const CannedServer&) = delete;
  CannedServer& operator=(const CannedServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }

 private:
  void serve() {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      char bytes[4096];
      static_cast<void>(!::read(client, bytes, sizeof bytes));
      ++requests_;
      if (answers_[i]) static_cast<void>(!::write(client, answers_[i]->data(), answers_[i]->size()));
      if (i + 1 == answers_.size()) ::shutdown(listener_, SHUT_RDWR);  // before the client notices the end
      ::close(client);
    }
  }

  const Answers answers_;
  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> requests_ = 0;
  std::thread serving_;
};

}  // namespace hapax
