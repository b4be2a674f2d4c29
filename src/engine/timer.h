// One thread that runs functions at their time: ends of waits, sweeps, cleanups.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace hapax {

class Timer {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  using Key = std::pair<Instant, std::uint64_t>;

  Timer();
  ~Timer();

  // Runs the function on the timer's thread, at the instant or soon after. Functions must not throw.
  Key at(Instant instant, std::function<void()> function);
  Key after(std::chrono::milliseconds delay, std::function<void()> function);
  void soon(std::function<void()> function) { after(std::chrono::milliseconds(0), std::move(function)); }

  // Cancels it. False if it has run, is running, or was cancelled before.
  bool cancel(const Key& key);

  // Runs what is due, drops the rest, and ends the thread.
  void stop();

 private:
  void run();
  void run_first(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::function<void()>> functions_;
  std::uint64_t last_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hapax
