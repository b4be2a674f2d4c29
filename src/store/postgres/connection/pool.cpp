#include "store/postgres/connection/pool.h"

#include <algorithm>

#include "core/invariant.h"

namespace hapax::postgres {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{20}, kLongestPause{1000};

}  // namespace

Pool::Lease Pool::take() {
  {
    std::unique_lock lock(mutex_);
    const bool free = CallDeadline::wait(returned_, lock, [&] { return taken_ < limit_ || closed_; });
    if (closed_) throw Lost("PostgreSQL: the connections are closed", false);
    if (!free) {
      throw Lost("PostgreSQL: no connection has become free in time: the server answers too slowly", false,
                 Lost::Cause::silent);
    }
    ++taken_;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return {*this, std::move(connection)};
    }
  }
  try {
    return {*this, connect()};
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --taken_;
    returned_.notify_one();
    throw;
  }
}

std::unique_ptr<Connection> Pool::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (Clock::now() < not_before_) throw Lost(last_error_, false, last_cause_);
  }
  try {
    auto connection = std::make_unique<Connection>(options_);
    const std::lock_guard lock(mutex_);
    pause_ = {};
    return connection;
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    not_before_ = Clock::now() + pause_;
    last_error_ = error.what();
    const auto* lost = dynamic_cast<const Lost*>(&error);
    last_cause_ = lost ? lost->cause() : Lost::Cause::gone;
    throw;
  }
}

void Pool::give_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  invariant(taken_ > 0 && taken_ <= limit_, "a connection that comes back was taken");
  --taken_;
  if (connection && !connection->broken()) idle_.push_back(std::move(connection));
  returned_.notify_one();
}

void Pool::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  returned_.notify_all();
}

void Pool::forget_idle() {
  std::vector<std::unique_ptr<Connection>> dead;
  const std::lock_guard lock(mutex_);
  dead.swap(idle_);
}

}  // namespace hapax::postgres
