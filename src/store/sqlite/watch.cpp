#include "store/sqlite/watch.h"

#include <chrono>

namespace hapax::sqlite {

namespace {

constexpr std::chrono::milliseconds kInterval{15};

}  // namespace

Watch::Watch(std::function<bool()> has_changed, std::function<void()> on_change)
    : has_changed_(std::move(has_changed)), on_change_(std::move(on_change)), thread_([this] { loop(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void Watch::loop() {
  std::unique_lock guard(mutex_);
  while (!stop_.wait_for(guard, kInterval, [this] { return stopping_; })) {
    guard.unlock();
    if (has_changed_()) on_change_();
    guard.lock();
  }
}

}  // namespace hapax::sqlite
