#include "http.h"

#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <utility>

namespace shop {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

namespace {

std::vector<std::string> segments_of(std::string_view target) {
  std::vector<std::string> segments;
  target = target.substr(0, target.find('?'));
  while (!target.empty()) {
    const std::size_t end = target.find('/');
    if (end != 0) segments.emplace_back(target.substr(0, end));
    if (end == std::string_view::npos) break;
    target.remove_prefix(end + 1);
  }
  return segments;
}

// One connection: it reads a request, answers it, and reads the next.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpServer::Respond& respond) : stream_(std::move(socket)), respond_(respond) {}

  void read() {
    request_ = {};
    stream_.expires_after(std::chrono::seconds(30));
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->write();
    });
  }

 private:
  void write() {
    const Answer answer = respond_({.method = std::string(request_.method_string()),
                                    .path = segments_of(request_.target()),
                                    .request_key = std::string(request_["Idempotency-Key"]),
                                    .body = request_.body()});
    response_ = {static_cast<http::status>(answer.status), request_.version()};
    response_.set(http::field::content_type, "application/json");
    response_.body() = answer.json + "\n";
    response_.keep_alive(request_.keep_alive());
    response_.prepare_payload();
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error && self->response_.keep_alive()) self->read();
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
  const HttpServer::Respond& respond_;
};

}  // namespace

HttpServer::HttpServer(unsigned short port, std::size_t threads, Respond respond)
    : respond_(std::move(respond)), acceptor_(io_, {boost::asio::ip::make_address("127.0.0.1"), port}) {
  accept();
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
}

HttpServer::~HttpServer() {
  io_.stop();
  threads_.clear();  // waits for what is being answered
}

void HttpServer::accept() {
  acceptor_.async_accept(boost::asio::make_strand(io_), [this](beast::error_code error, tcp::socket socket) {
    if (!error) std::make_shared<Connection>(std::move(socket), respond_)->read();
    if (acceptor_.is_open()) accept();
  });
}

}  // namespace shop
