// Ends the process if its shutdown takes too long: a hanging store must not keep a stopped server alive.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/time.h"

namespace hapax {

class EndWatch {
 public:
  EndWatch() = default;
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // Calls `interrupt` after `patience`, and ends the process after `grace`, with a line in the log and kFailed, unless
  // this object is destroyed before.
  void begin(Duration grace, Duration patience, std::function<void()> interrupt);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace hapax
