// HTTP for the shop: requests in, answers out, on Boost.Beast.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace shop {

struct Request {
  std::string method;             // "GET"
  std::vector<std::string> path;  // "/orders/456" is {"orders", "456"}
  std::string request_key;        // the header Idempotency-Key
  std::string body;
};

struct Answer {
  unsigned status = 200;
  std::string json;
};

// Listens on 127.0.0.1, and calls `respond` on its threads until it goes out of scope.
class HttpServer {
 public:
  using Respond = std::function<Answer(const Request&)>;
  HttpServer(unsigned short port, std::size_t threads, Respond respond);
  ~HttpServer();

  unsigned short port() const { return acceptor_.local_endpoint().port(); }

 private:
  void accept();

  Respond respond_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::jthread> threads_;
};

}  // namespace shop
