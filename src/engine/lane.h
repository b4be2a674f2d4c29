// Group commit: one thread that hands the store, in one call, everything that arrived while the last call was committing.
// Or several, for a store that gains by committing beside itself: then two puts under way at the same time have no order.
//
// An idle lane commits one item at once. A busy one gathers: the callers it has just answered come back within a moment, one
// by one, and to commit the first of them alone would keep all the others waiting for a whole commit. So after a batch it
// waits until half as many callers are there again, but never longer than a small part of what a commit takes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/failure.h"
#include "engine/reply.h"

namespace hapax {

template <class Item, class Outcome>
class Lane {
 public:
  using Commit = std::function<std::vector<Outcome>(std::span<const Item>)>;
  using Done = Reply<std::vector<Outcome>>;

  // `commit` gives one outcome for each item, or throws. When it throws outcome_unknown and `repeatable`, the same batch is
  // sent again, until the store knows. A batch has at most `max_batch` items, or one put() of more. With several
  // `committers`, `commit` runs that often at once.
  Lane(Commit commit, std::size_t max_batch, bool repeatable, std::size_t committers = 1)
      : commit_(std::move(commit)), max_batch_(max_batch), repeatable_(repeatable) {
    for (std::size_t i = 0; i < committers; ++i) threads_.emplace_back([this] { run(); });
  }

  ~Lane() { stop(); }

  // Answers on a thread of the lane's once the items are committed, together and in their order.
  void put(std::vector<Item> items, Done done) {
    {
      std::lock_guard lock(mutex_);
      if (!stopping_) {
        waiting_.push_back({std::move(items), std::move(done)});
        if (waiting_.size() == enough_) arrived_.notify_one();
        return;
      }
    }
    done(std::make_exception_ptr(Failure(Failure::Code::stopped, "the engine is shutting down")));
  }

  // Commits what was put, then ends the threads. What is put later is answered with Failure::stopped.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      arrived_.notify_one();
    }
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  std::int64_t commits() const { return commits_; }
  std::int64_t failures() const { return failures_; }

 private:
  struct Group {
    std::vector<Item> items;
    Done done;
  };

  // The outcome of a commit was lost this often in a row: then the store is not coming back soon.
  static constexpr int kMaxRepeats = 5;

  void run() {
    std::vector<Group> groups;
    std::vector<Item> batch;
    while (take(groups, batch)) {
      std::vector<Outcome> outcomes;
      std::exception_ptr failure;
      try {
        outcomes = commit(batch);
        ++commits_;
      } catch (...) {
        ++failures_;
        failure = std::current_exception();
      }
      failure ? fail(groups, failure) : answer(groups, std::move(outcomes));
      groups.clear();
      batch.clear();
    }
  }

  static void fail(std::vector<Group>& groups, const std::exception_ptr& failure) {
    for (Group& group : groups) group.done(failure);
  }

  static void answer(std::vector<Group>& groups, std::vector<Outcome> outcomes) {
    auto next = std::make_move_iterator(outcomes.begin());
    for (Group& group : groups) {
      const auto count = static_cast<std::ptrdiff_t>(group.items.size());
      group.done(std::vector<Outcome>(next, next + count));
      next += count;
    }
  }

  // The longest that a busy lane gathers.
  static constexpr std::chrono::microseconds kGather{200};
  static constexpr std::size_t kBusy = 8;  // callers in the last commit

  // Waits for work and takes a batch of it. The groups keep their size: their items are moved out, not erased.
  bool take(std::vector<Group>& groups, std::vector<Item>& batch) {
    const std::lock_guard alone(taking_);
    std::unique_lock lock(mutex_);
    if (last_callers_ >= kBusy) {
      enough_ = last_callers_ / 2;
      arrived_.wait_for(lock, kGather, [&] { return stopping_ || waiting_.size() >= enough_; });
      enough_ = 1;
    }
    arrived_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    while (!waiting_.empty() && (groups.empty() || batch.size() + waiting_.front().items.size() <= max_batch_)) {
      Group group = std::move(waiting_.front());
      waiting_.pop_front();
      for (Item& item : group.items) batch.push_back(std::move(item));
      groups.push_back(std::move(group));
    }
    last_callers_ = groups.size();
    return !groups.empty();
  }

  std::vector<Outcome> commit(std::span<const Item> batch) {
    for (int repeats = 0;; ++repeats) {
      try {
        return commit_(batch);
      } catch (const Failure& failure) {
        const bool unknown = failure.code() == Failure::Code::outcome_unknown;
        if (!unknown || !repeatable_ || repeats == kMaxRepeats) throw;
      }
    }
  }

  const Commit commit_;
  const std::size_t max_batch_;
  const bool repeatable_;
  std::mutex taking_;  // one thread at a time waits for work
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Group> waiting_;
  std::size_t enough_ = 1;      // waiting groups, for the thread to be woken
  std::size_t last_callers_ = 0;  // that the last commit answered
  bool stopping_ = false;
  std::atomic<std::int64_t> commits_ = 0, failures_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace hapax
