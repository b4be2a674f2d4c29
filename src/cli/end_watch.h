// Ends the process when its end takes too long: a store that hangs must not keep a server that was told to stop.
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

  // Unless this object ends before that: calls `interrupt` after `patience`, and ends the process after `grace`, with a
  // line in the log and kFailed.
  void begin(Duration grace, Duration patience, std::function<void()> interrupt);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace hapax
