#include "http/read_pool.h"

#include <algorithm>

#include "core/failure.h"
#include "http/error.h"
#include "store/call_deadline.h"

namespace hapax::http {

namespace {

constexpr std::size_t kMaxJobs = 1024;  // waiting for a thread

}  // namespace

ReadPool::ReadPool(std::size_t threads, std::chrono::milliseconds patience) : patience_(patience) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) threads_.emplace_back([this] { run(); });
}

void ReadPool::answer(const Responder& responder, std::function<Response()> make) {
  begin(responder, [responder, make = std::move(make)] { responder.answer(make()); });
}

void ReadPool::begin(const Responder& responder, std::function<void()> start) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) throw Failure(Failure::Code::stopped, "the server is shutting down");
    if (jobs_.size() >= kMaxJobs) throw overloaded("Too many requests wait for the store.");
    jobs_.push_back({responder, std::move(start), std::chrono::steady_clock::now() + patience_});
  }
  changed_.notify_one();
}

void ReadPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ReadPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      if (std::chrono::steady_clock::now() > job.end_by)
        throw overloaded("The requests before this one took too long.");
      const CallDeadline deadline(job.end_by);
      job.start();
    } catch (...) {
      job.responder.answer(error_response(std::current_exception()));
    }
    lock.lock();
  }
}

}  // namespace hapax::http
