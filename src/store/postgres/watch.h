// Wake-ups between processes that share a database.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "store/postgres/connection/connection.h"
#include "store/postgres/connection/interrupt.h"

namespace hapax::postgres {

// The name of one handle on the store, so that it ignores its own notifications.
std::string new_handle_name();

// A thread that calls `on_change` when another handle announced a change; and now and then without, because a writer
// may have died before it could announce. Behind a pooler it only does the latter, more often.
class Listener {
 public:
  // Whatever it asks the server for has the timeout.
  Listener(ConnectionOptions options, std::string handle, Duration timeout, std::function<void()> on_change);
  ~Listener();  // on_change is not running on return
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Calls on_change soon.
  void look_now();

 private:
  void loop();
  void listen(Connection& connection);
  bool hear(Connection& connection);           // waits until there is something to announce; false: stopping
  bool pause(std::chrono::milliseconds time);  // or until look_now(); false: stopping
  bool take_woken();

  Interrupt stopping_;
  ConnectionOptions options_;
  const std::string handle_;
  const Duration timeout_;
  const std::function<void()> on_change_;
  int woken_ = -1;  // an eventfd
  std::thread thread_;
};

// A thread that announces changes to the other handles: at once, then at most every few milliseconds, because every
// notification costs all parallelism a lock. Announces nothing while no one else listens.
class Notifier {
 public:
  Notifier(ConnectionOptions options, std::string handle);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void changed();

 private:
  void loop();
  void notify();

  ConnectionOptions options_;
  const std::string handle_;
  std::unique_ptr<Connection> connection_;
  std::chrono::steady_clock::time_point looked_at_{};
  bool anybody_ = true;  // else listened, when it last looked
  std::mutex mutex_;
  std::condition_variable woken_;
  bool dirty_ = false, stopping_ = false;
  std::thread thread_;
};

// What to send in a foreign transaction so that all handles learn of it when it commits.
Statement notification();

}  // namespace hapax::postgres
