#include "engine/timer.h"

namespace hapax {

Timer::Timer() : thread_([this] { run(); }) {}

Timer::~Timer() { stop(); }

Timer::Key Timer::at(Instant instant, std::function<void()> function) {
  std::lock_guard lock(mutex_);
  const Key key{instant, ++last_};
  const auto placed = functions_.emplace(key, std::move(function)).first;
  if (placed == functions_.begin()) changed_.notify_one();
  return key;
}

Timer::Key Timer::after(std::chrono::milliseconds delay, std::function<void()> function) {
  return at(std::chrono::steady_clock::now() + delay, std::move(function));
}

bool Timer::cancel(const Key& key) {
  std::function<void()> dropped;  // destroyed after the lock is released: it may own a waiting call
  std::lock_guard lock(mutex_);
  const auto found = functions_.find(key);
  if (found == functions_.end()) return false;
  dropped = std::move(found->second);
  functions_.erase(found);
  return true;
}

void Timer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Timer::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (functions_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Instant next = functions_.begin()->first.first;
    if (next > std::chrono::steady_clock::now()) {
      changed_.wait_until(lock, next);
      continue;
    }
    run_first(lock);
  }
  const Instant end = std::chrono::steady_clock::now();
  while (!functions_.empty() && functions_.begin()->first.first <= end) run_first(lock);
}

void Timer::run_first(std::unique_lock<std::mutex>& lock) {
  const auto function = std::move(functions_.begin()->second);
  functions_.erase(functions_.begin());
  lock.unlock();
  function();
  lock.lock();
}

}  // namespace hapax
