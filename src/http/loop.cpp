#include "http/loop.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

namespace hapax::http {

Loop::Loop(Service& service, const ServerOptions& options) : service_(service), options_(options) {}

void Loop::start() {
  tick();
  thread_ = std::thread([this] {
    while (true) {
      try {
        context_.run();
        return;
      } catch (const std::exception& error) {
        spdlog::error("http: unexpected on a connection: {}", error.what());
      }
    }
  });
}

void Loop::adopt(Connection::Socket socket, bool spare) {
  if (draining_) return service_.load().remove_connection();
  auto connection = std::make_shared<Connection>(shared_from_this(), std::move(socket), spare);
  connections_.insert(connection);
  connection->start();
}

void Loop::forget(const std::shared_ptr<Connection>& connection) {
  if (connections_.erase(connection) == 0) return;
  service_.load().remove_connection();
  if (draining_ && connections_.empty()) drained_.set_value();
}

void Loop::hold(std::size_t bytes, const Connection& latest) {
  held_bytes_ += bytes;
  while (held_bytes_ > options_.max_unsent_bytes / options_.io_threads) {
    const auto longest = std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
      return a->stalled_since() < b->stalled_since();
    });
    if (longest == connections_.end() || longest->get() == &latest) return;
    if ((*longest)->stalled_since() == Connection::Clock::time_point::max()) return;
    spdlog::warn("http: closed a client that does not take its answer: too much is held for such clients");
    const std::shared_ptr<Connection> stalled = *longest;
    stalled->close();
  }
}

void Loop::answer(std::shared_ptr<Connection> connection, std::uint64_t ticket, std::function<Response()> make) {
  {
    const std::lock_guard lock(answers_mutex_);
    if (ended_.load(std::memory_order_acquire)) return;
    answers_.push_back({std::move(connection), ticket, std::move(make)});
    if (answers_.size() > 1) return;
  }
  post([self = shared_from_this()] { self->send_answers(); });
}

void Loop::send_answers() {
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(answers_mutex_);
    answers.swap(answers_);
  }
  for (const auto& [connection, ticket, make] : answers) {
    try {
      connection->send(ticket, make);
    } catch (const std::exception& error) {
      spdlog::error("http: unexpected on a connection: {}", error.what());
    }
  }
}

std::future<void> Loop::drain() {
  auto future = drained_.get_future();
  post([self = shared_from_this()] {
    self->draining_ = true;
    self->tick();  // more often from here on
    if (self->connections_.empty()) return self->drained_.set_value();
    const std::vector<std::shared_ptr<Connection>> open(self->connections_.begin(), self->connections_.end());
    for (const auto& connection : open) connection->drain();
  });
  return future;
}

void Loop::stop() {
  post([self = shared_from_this()] {
    self->ended_.store(true, std::memory_order_release);
    const std::vector<std::shared_ptr<Connection>> open(self->connections_.begin(), self->connections_.end());
    for (const auto& connection : open) connection->give_up();
    self->timer_.cancel();
    self->work_.reset();
  });
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(answers_mutex_);
  answers_.clear();  // they hold connections, which hold this loop
}

// One timer checks all connections: cheaper than one per connection that is reset with every request.
void Loop::tick() {
  const auto shortest =
      std::min({options_.read_timeout, options_.idle_timeout, options_.write_timeout, options_.store_timeout});
  const std::chrono::milliseconds longest(draining_ ? 25 : 500);
  const auto period = std::clamp(shortest / 4, std::chrono::milliseconds(5), longest);
  timer_.expires_after(period);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->ended_.load(std::memory_order_relaxed)) return;
    const auto now = Connection::Clock::now();
    const std::vector<std::shared_ptr<Connection>> open(self->connections_.begin(), self->connections_.end());
    for (const auto& connection : open) connection->check_time(now);
    self->tick();
  });
}

}  // namespace hapax::http
