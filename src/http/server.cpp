#include "http/server.h"

#include <stdexcept>
#include <system_error>

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <boost/asio/ip/tcp.hpp>

#include "http/loop.h"
#include "http/service.h"

namespace hapax {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};  // while no more connections are available
constexpr std::size_t kSpareConnections = 64;           // beyond the limit, so that /health still answers

class HttpServer final : public Server {
 public:
  HttpServer(Engine& engine, const ServerOptions& options) : options_(options), service_(engine, options_) {
    if (options_.io_threads == 0) throw std::invalid_argument("the server needs at least one I/O thread");
    for (std::size_t i = 0; i < options_.io_threads; ++i)
      loops_.push_back(std::make_shared<http::Loop>(service_, options_));
    acceptor_ = std::make_unique<tcp::acceptor>(loops_[0]->context());
    pause_ = std::make_unique<asio::steady_timer>(loops_[0]->context());
    listen();
    accept();
    for (const auto& loop : loops_) loop->start();
  }

  ~HttpServer() override { stop(); }

  std::string address() const override {
    const bool v6 = endpoint_.address().is_v6();
    return fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), endpoint_.address().to_string(), endpoint_.port());
  }

  std::uint16_t port() const override { return endpoint_.port(); }

  void change_access(const std::vector<AccessToken>& tokens, const std::vector<std::string>& hosts) override {
    service_.change_access(tokens, hosts);
  }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    const auto deadline = std::chrono::steady_clock::now() + options_.drain_timeout;
    close_acceptor();
    std::vector<std::future<void>> drained;
    for (const auto& loop : loops_) drained.push_back(loop->drain());
    for (auto& future : drained) {
      if (future.wait_until(deadline) == std::future_status::timeout) {
        spdlog::warn("http: stopped with requests unanswered after {} ms", options_.drain_timeout.count());
        break;
      }
    }
    for (const auto& loop : loops_) loop->stop();
    service_.stop();
    pause_.reset();
    acceptor_.reset();
  }

 private:
  void listen() try {
    tcp::resolver resolver(loops_[0]->context());
    const auto found = resolver.resolve(options_.host, std::to_string(options_.port), tcp::resolver::passive);
    endpoint_ = found.begin()->endpoint();
    acceptor_->open(endpoint_.protocol());
    acceptor_->set_option(tcp::acceptor::reuse_address(true));
    acceptor_->bind(endpoint_);
    acceptor_->listen();
    endpoint_ = acceptor_->local_endpoint();
  } catch (const boost::system::system_error& error) {  // which is not a std::system_error
    throw std::system_error(static_cast<std::error_code>(error.code()),
                            fmt::format("cannot listen on {}:{}", options_.host, options_.port));
  }

  void accept() {
    if (service_.load().connections() >= options_.max_connections + kSpareConnections) return accept_later();
    http::Loop& loop = *loops_[next_++ % loops_.size()];
    acceptor_->async_accept(loop.context(), [this, &loop](const error_code& error, tcp::socket socket) {
      if (!acceptor_->is_open()) return;
      if (error) {
        spdlog::warn("http: cannot accept a connection: {}", error.message());
        return accept_later();
      }
      const bool spare = service_.load().add_connection() > options_.max_connections;
      if (spare) spdlog::warn("http: more connections than [server] max_connections allows; they are refused");
      auto shared = std::make_shared<tcp::socket>(std::move(socket));
      loop.post([&loop, shared, spare] { loop.adopt(std::move(*shared), spare); });
      accept();
    });
  }

  void accept_later() {
    pause_->expires_after(kAcceptPause);
    pause_->async_wait([this](const error_code& cancelled) {
      if (!cancelled && acceptor_->is_open()) accept();
    });
  }

  void close_acceptor() {
    std::promise<void> closed;
    loops_[0]->post([this, &closed] {
      error_code ignored;
      acceptor_->close(ignored);
      pause_->cancel();
      closed.set_value();
    });
    closed.get_future().wait();
  }

  const ServerOptions options_;
  http::Service service_;
  std::vector<std::shared_ptr<http::Loop>> loops_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::unique_ptr<asio::steady_timer> pause_;
  tcp::endpoint endpoint_;
  std::size_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Server> start_server(Engine& engine, ServerOptions options) {
  return std::make_unique<HttpServer>(engine, options);
}

}  // namespace hapax
