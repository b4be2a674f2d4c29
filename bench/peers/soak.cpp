#include "soak.h"

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "hapax/app.h"
#include "payload.h"
#include "stored_work.h"
#include "worker_process.h"

namespace hapax::bench {

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kBatch = 500;
constexpr std::int64_t kMaxWaiting = 10'000;  // submitting is throttled, so that the worker is what is measured
constexpr auto kPatience = 60s;

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options), next_(options.first), app_(open(options.url)), worker_(options.url, options.threads) {}

  SoakFigure run() {
    SoakFigure figure;
    {
      std::jthread counting([this] { count_starts(); });
      {
        std::vector<std::jthread> submitting;
        for (int i = 0; i < 2; ++i) submitting.emplace_back([this] { submit_batches(); });
        const auto begin = std::chrono::steady_clock::now();
        for (std::chrono::seconds second = 1s; second <= options_.duration && !failed_; ++second) {
          const std::int64_t before = started_;
          std::this_thread::sleep_until(begin + second);
          figure.tasks_per_second.push_back(static_cast<double>(started_ - before));
        }
        stop_ = true;
      }
      await_drained();
      worker_.stop();
    }
    if (failure_) std::rethrow_exception(failure_);
    if (started_ != submitted_)
      throw std::runtime_error(fmt::format("{} of {} tasks were run", started_.load(), submitted_.load()));
    figure.count = submitted_;
    return figure;
  }

 private:
  void submit_batches() {
    guarded([this] {
      while (!stop_ && !failed_) {
        if (submitted_ - started_ > kMaxWaiting) {
          std::this_thread::sleep_for(1ms);
          continue;
        }
        const std::int64_t from = next_.fetch_add(kBatch);
        std::vector<BatchItem> items;
        for (std::int64_t i = from; i < from + kBatch; ++i)
          items.push_back(BatchItem::of("noop", payload_of(i), key(key_of(i))));
        for (const AnyHandle& handle : app_.submit_batch(items)) {
          if (!handle.created()) throw std::runtime_error("a new key met a task that was there before");
        }
        submitted_ += kBatch;
      }
    });
  }

  // Every task is seen exactly once, in any order.
  void count_starts() {
    guarded([this] {
      std::vector<bool> seen;
      while (const std::optional<TaskStart> start = worker_.next_start()) {
        const auto place = static_cast<std::size_t>(start->i - options_.first);
        if (place >= seen.size()) seen.resize(2 * place + 1);
        if (seen[place]) throw std::runtime_error("a task was run twice");
        seen[place] = true;
        ++started_;
      }
    });
  }

  void await_drained() {
    guarded([this] {
      StoredWork stored(options_.url);
      const auto end = std::chrono::steady_clock::now() + kPatience;
      while (!failed_ && stored.open() > 0) {
        if (std::chrono::steady_clock::now() > end)
          throw std::runtime_error(fmt::format("{} tasks stay open", stored.open()));
        std::this_thread::sleep_for(10ms);
      }
    });
  }

  void guarded(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  const SoakOptions options_;
  std::atomic<std::int64_t> next_, submitted_ = 0, started_ = 0;
  std::atomic<bool> stop_ = false, failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  App app_;
  WorkerProcess worker_;
};

}  // namespace

SoakFigure soak(const SoakOptions& options) { return Soak(options).run(); }

}  // namespace hapax::bench
