// A few threads for synchronous engine calls, so that no connection's thread waits for the store.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "http/message.h"

namespace hapax::http {

class ReadPool {
 public:
  // A call that has not ended within `patience` is refused or given up. While too many wait, new ones are refused.
  ReadPool(std::size_t threads, std::chrono::milliseconds patience);
  ~ReadPool() { stop(); }

  // Answers with what `make` returns or throws, from a thread of the pool.
  void answer(const Responder& responder, std::function<Response()> make);

  // Runs `start` on a thread of the pool. It answers itself, now or later; what it throws is answered.
  void begin(const Responder& responder, std::function<void()> start);

  // Finishes earlier requests, then ends the threads. Idempotent; later requests are refused as shutting down.
  void stop();

 private:
  struct Job {
    Responder responder;
    std::function<void()> start;
    std::chrono::steady_clock::time_point end_by;
  };

  void run();

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hapax::http
