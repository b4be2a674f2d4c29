// The connections of a store: as many as verbs are running, up to a limit, reopened when they break.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/postgres/connection/connection.h"

namespace hapax::postgres {

class Pool {
 public:
  Pool(ConnectionOptions options, std::size_t limit) : options_(std::move(options)), limit_(limit) {}

  // A connection held by one verb; it goes back when dropped, unless it is broken.
  class Lease {
   public:
    Lease(Pool& pool, std::unique_ptr<Connection> connection) : pool_(pool), connection_(std::move(connection)) {}
    ~Lease() { pool_.give_back(std::move(connection_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Connection& operator*() const { return *connection_; }
    Connection* operator->() const { return connection_.get(); }

   private:
    Pool& pool_;
    std::unique_ptr<Connection> connection_;
  };

  // Waits for a free one, until CallDeadline::current(). Throws Lost or Refused if the server cannot be reached; after
  // a failed try it does not try again before a pause, which grows, and throws at once.
  Lease take();

  // No one gets a connection any more, or waits for one.
  void close();

  // After the server went away: the idle ones are as dead as the one that noticed.
  void forget_idle();

 private:
  void give_back(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connect();

  const ConnectionOptions options_;
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::size_t taken_ = 0;
  bool closed_ = false;

  std::chrono::milliseconds pause_{};
  std::chrono::steady_clock::time_point not_before_{};
  std::string last_error_;
  Lost::Cause last_cause_ = Lost::Cause::gone;
};

}  // namespace hapax::postgres
