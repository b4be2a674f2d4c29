#include "cli/end_watch.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "cli/command.h"

namespace hapax {

EndWatch::~EndWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void EndWatch::begin(Duration grace, Duration patience, std::function<void()> interrupt) {
  thread_ = std::thread([this, grace, patience, interrupt = std::move(interrupt)] {
    const auto began = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, began + patience, [this] { return over_; })) return;
    lock.unlock();
    interrupt();
    lock.lock();
    if (changed_.wait_until(lock, began + grace, [this] { return over_; })) return;
    spdlog::error("the store did not answer within the grace of {}: ending without it; what was acknowledged is kept",
                  format_duration(grace));
    spdlog::default_logger()->flush();
    _exit(kFailed);
  });
}

}  // namespace hapax
