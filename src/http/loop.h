// A thread with its connections. Connections never move between loops, so they need no locks.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/invariant.h"
#include "http/connection.h"
#include "http/server.h"
#include "http/service.h"

namespace hapax::http {

class Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(Service& service, const ServerOptions& options);

  void start();

  // From any thread: the future is ready when all connections are closed, after answering what they had received.
  std::future<void> drain();

  // From any other thread: closes what is left and ends the thread.
  void stop();

  // From any thread; dropped once the loop has stopped.
  template <class Work>
  void post(Work work) {
    if (!ended_.load(std::memory_order_acquire)) boost::asio::post(context_, std::move(work));
  }

  // From any thread; dropped once the loop has stopped. Makes the connection send its answer. The answers of one commit
  // arrive close together: the first wakes the loop, which sends all that are ready.
  void answer(std::shared_ptr<Connection> connection, std::uint64_t ticket, std::function<Response()> make);

  // From any thread: runs at once on the loop's own thread, else like post().
  template <class Work>
  void run(Work work) {
    context_.get_executor().running_in_this_thread() ? work() : post(std::move(work));
  }

  // On the loop's own thread. The connection is already counted in the load.
  void adopt(Connection::Socket socket, bool spare);
  void forget(const std::shared_ptr<Connection>& connection);

  // Bytes of answers that clients do not take at once. If there are too many, the connections whose clients have taken
  // nothing for the longest time are closed.
  void hold(std::size_t bytes, const Connection& latest);
  void let_go(std::size_t bytes) {
    invariant(bytes <= held_bytes_, "only what is held is let go");
    held_bytes_ -= bytes;
  }

  boost::asio::io_context& context() { return context_; }
  Service& service() { return service_; }
  const ServerOptions& options() const { return options_; }
  std::array<char, 65536>& scratch() { return scratch_; }

 private:
  struct Answer {
    std::shared_ptr<Connection> connection;
    std::uint64_t ticket;
    std::function<Response()> make;
  };

  void tick();
  void send_answers();

  Service& service_;
  const ServerOptions options_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  boost::asio::steady_timer timer_{context_};
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::mutex answers_mutex_;
  std::vector<Answer> answers_;  // not empty: the loop has been woken for them
  std::promise<void> drained_;
  std::size_t held_bytes_ = 0;
  bool draining_ = false;
  std::atomic<bool> ended_{false};
  std::array<char, 65536> scratch_;
  std::thread thread_;
};

}  // namespace hapax::http
