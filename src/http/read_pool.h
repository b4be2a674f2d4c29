// A few threads for what the engine answers or looks up synchronously, so that no connection's thread ever waits for
// the store.
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
  // What has not ended `patience` after it was asked for is refused or given up; what comes while too much waits is
  // refused.
  ReadPool(std::size_t threads, std::chrono::milliseconds patience);
  ~ReadPool() { stop(); }

  // Answers with what `make` returns or throws, from a thread of the pool.
  void answer(const Responder& responder, std::function<Response()> make);

  // Runs `start` on a thread of the pool. It sees to the answer, now or later; what it throws is answered.
  void begin(const Responder& responder, std::function<void()> start);

  // Does what was asked for before, then ends the threads. Idempotent; later requests are refused as shutting down.
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
