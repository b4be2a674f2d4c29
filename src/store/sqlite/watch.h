// Hears of other processes' commits.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace hapax::sqlite {

// A thread that asks `has_changed` some 60 times a second and calls `on_change` when it says so.
class Watch {
 public:
  Watch(std::function<bool()> has_changed, std::function<void()> on_change);
  ~Watch();  // on_change is not running on return
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void loop();

  std::function<bool()> has_changed_;
  std::function<void()> on_change_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hapax::sqlite
