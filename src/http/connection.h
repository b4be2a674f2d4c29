// One client's connection: reads requests, has them handled, writes the answers in order.
//
// A connection belongs to one loop and runs on its thread only; just Exchange::answer comes from elsewhere. One request
// is handled at a time; what a client sends meanwhile waits. While nothing is being read there is no buffer and no
// parser.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "http/message.h"

namespace hapax::http {

class Loop;

class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Socket = boost::asio::ip::tcp::socket;

  Connection(std::shared_ptr<Loop> loop, Socket socket);

  void start();
  void drain();  // answer what was received, then close
  void check_time(Clock::time_point now);
  void close();

  void answer(std::uint64_t ticket, std::function<Response()> make) override;
  void send(std::uint64_t ticket, const std::function<Response()>& make);
  void wait(std::uint64_t ticket, std::shared_ptr<Waiting> waiting) override;

 private:
  using Body = boost::beast::http::string_body;
  using Parser = boost::beast::http::request_parser<Body>;
  enum class State : std::uint8_t { reading, answering, writing, lingering, closed };

  void arm();
  void on_readable();
  void read();
  void watch_for_hang_up();
  void discard();
  void next();

  void consume(std::string_view chunk);
  std::size_t feed(std::string_view bytes, boost::system::error_code& error);
  void after_feeding(const boost::system::error_code& error);
  void continue_if_expected();
  void dispatch();
  void refuse(const boost::system::error_code& error);

  void write(Response response);
  void write_rest(std::size_t written);
  void written();

  std::shared_ptr<Loop> loop_;
  Socket socket_;
  std::unique_ptr<Parser> parser_;  // of the request that is being read
  std::string pending_;             // received, not parsed
  std::string head_, body_;         // of the answer that is being written
  std::shared_ptr<Waiting> waiting_;
  Clock::time_point deadline_ = Clock::time_point::max();  // of the current state
  Clock::time_point received_;                             // when the request was whole
  std::uint64_t ticket_ = 0;
  std::size_t route_ = 0;
  State state_ = State::reading;
  bool armed_ = false;  // told when the socket is readable
  bool keep_alive_ = true;
  bool old_version_ = false;  // HTTP/1.0
  bool bodyless_ = false;     // HEAD: the answer is told without its body
  bool continued_ = false;
  bool draining_ = false;
  bool ended_ = false;    // the client sends nothing more
  bool lingers_ = false;  // close only when the client has taken the answer
};

}  // namespace hapax::http
