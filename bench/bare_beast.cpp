#include "bare_beast.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace hapax::bench {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// As long as a receipt.
const std::string kAnswer =
    R"({"created":true,"deduplicated_from":null,"execution":{"id":"0199f0d4-7c55-7c3e-a5a1-2f1f0d6b8c11","kind":"task",)"
    R"("type":"charge","queue":"default","status":"pending","priority":0,"idempotency_key":"order-123456","attempt":0,)"
    R"("max_attempts":3,"created_at":"2026-11-18T20:45:28.123Z","run_at":"2026-11-18T20:45:28.123Z"},"match":)"
    R"({"strategy":"caller_provided","scope":"type","identity_hash":"sha256:)"
    R"(9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","expires_at":null,"superseded":null}})";

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    answer_.result(http::status::created);
    answer_.set(http::field::content_type, "application/json");
    answer_.body() = kAnswer;
    answer_.prepare_payload();
  }

  void read() {
    request_ = {};
    http::async_read(socket_, buffer_, request_, [self = shared_from_this()](const error_code& error, std::size_t) {
      if (!error) self->write();
    });
  }

 private:
  void write() {
    http::async_write(socket_, answer_, [self = shared_from_this()](const error_code& error, std::size_t) {
      if (!error) self->read();
    });
  }

  tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> answer_;
};

void accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](const error_code& error, tcp::socket socket) {
    if (error) return;
    std::make_shared<Session>(std::move(socket))->read();
    accept(acceptor);
  });
}

}  // namespace

void serve_bare_beast() {
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  asio::signal_set signals(context, SIGTERM);
  signals.async_wait([&](const error_code&, int) { context.stop(); });
  accept(acceptor);
  fmt::print("listening on http://127.0.0.1:{}\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  context.run();
}

}  // namespace hapax::bench
