// One client's connection: reads requests, passes them on, writes the answers in order.
//
// A connection belongs to one loop and runs only on its thread; a Call brings answers from other threads. It handles
// one request at a time; further requests wait. A request is admitted or refused at the end of its head, before its
// body is read. While nothing is being read there is no buffer and no parser.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "http/load.h"
#include "http/message.h"
#include "http/negotiation.h"
#include "http/router.h"

namespace hapax::http {

class Loop;

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Socket = boost::asio::ip::tcp::socket;

  // A `spare` connection is beyond the server's limit: it gets one answer, if the request needs no token.
  Connection(std::shared_ptr<Loop> loop, Socket socket, bool spare);

  void start();
  void drain();    // answer what was received, then close
  void give_up();  // answer without waiting any longer, then close
  void check_time(Clock::time_point now);
  void close();

  // For the request of that ticket; does nothing if it is already answered.
  void send(std::uint64_t ticket, const std::function<Response()>& make);
  void wait(std::uint64_t ticket, std::shared_ptr<Waiting> waiting);
  void limit(std::uint64_t ticket, std::chrono::milliseconds time, std::function<Response()> otherwise);

  Loop& loop() { return *loop_; }

  // Since when the client has taken nothing of the current answer.
  Clock::time_point stalled_since() const { return held_bytes_ > 0 ? progress_ : Clock::time_point::max(); }

 private:
  using Body = boost::beast::http::string_body;
  using Parser = boost::beast::http::request_parser<Body>;
  enum class State : std::uint8_t { reading, answering, writing, lingering, closed };

  // The request being read.
  struct Incoming {
    explicit Incoming(Load& load) : share(load) {}

    Parser parser;
    Request request;
    const Route* route = nullptr;     // set at the end of the head, unless it is refused
    std::optional<Response> refusal;  // the answer instead
    Load::Share share;
    bool is_asked_for = false;  // the client was told to send the body (100 Continue)
  };

  void arm();
  void on_readable();
  void read();
  void watch_for_hang_up();
  void discard();
  void next();

  void consume(std::string_view chunk);
  std::size_t feed(std::string_view bytes, boost::system::error_code& error);
  void begin_request();
  void head_done(std::string_view bytes);
  void take_body_bytes();
  bool is_refused_at_once() const;
  void after_feeding(const boost::system::error_code& error);
  void continue_if_expected();
  void dispatch();
  void refuse(const boost::system::error_code& error);
  void refuse(Response response);
  void expire();

  void write_as_preferred(Response response);
  void compress_elsewhere(Response response);
  void write(Response response);
  void write_rest();
  void on_writable();
  void written();

  std::shared_ptr<Loop> loop_;
  Socket socket_;
  std::shared_ptr<Incoming> incoming_;
  std::string pending_;      // received, not parsed
  std::string head_, body_;  // of the answer being written
  std::size_t sent_bytes_ = 0;
  std::size_t held_bytes_ = 0;  // the part of an answer that the socket did not take at once
  std::shared_ptr<Waiting> waiting_;
  std::function<Response()> otherwise_;                    // answered when the time has passed
  Clock::time_point deadline_ = Clock::time_point::max();  // of the current state
  Clock::time_point received_;                             // when the request was whole
  Clock::time_point progress_;                             // when the socket last took something
  Clock::time_point lingers_until_;                        // upper bound while the client still sends
  std::uint64_t ticket_ = 0;
  std::size_t route_ = 0;
  State state_ = State::reading;
  Preferences preferences_;  // for the answer to the current request
  const bool spare_;
  bool armed_ = false;  // wakes when the socket is readable
  bool keep_alive_ = true;
  bool old_version_ = false;  // HTTP/1.0
  bool bodyless_ = false;     // HEAD: the answer is sent without its body
  bool changes_ = false;      // the request may change something
  bool draining_ = false;
  bool lingers_ = false;  // close only after the client has taken the answer
};

}  // namespace hapax::http
