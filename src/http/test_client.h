// A bare blocking client for tests: sends any bytes, reads answers one by one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hapax::http {

struct Received {
  int status = 0;                              // 0: the server closed the connection instead
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class TestClient {
 public:
  explicit TestClient(std::uint16_t port);
  ~TestClient();
  TestClient(TestClient&& other) noexcept;
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  TestClient& operator=(TestClient&&) = delete;

  void send(std::string_view bytes);
  Received read();
  std::string rest();  // everything until the server closes
  bool at_end();       // blocks until the server closes or sends
  void close();

  Received call(std::string_view method, std::string_view path, std::string_view body = "",
                std::string_view headers = "");

 private:
  bool fill();

  int socket_ = -1;
  std::string buffer_;
};

// The bytes of a request; `headers` are whole lines.
std::string request_bytes(std::string_view method, std::string_view path, std::string_view body = "",
                          std::string_view headers = "");

}  // namespace hapax::http
