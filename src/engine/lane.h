// Group commit: one thread that hands the store, in one call, everything that arrived while the last call was
// committing. Or several threads, for a store that gains by concurrent commits: then two concurrent puts have no order.
//
// An idle lane commits one item at once. A busy one gathers: the callers it has just answered come back within a
// moment, one by one, and committing the first of them alone would make all the others wait for a whole commit. So
// after a batch it waits until half as many callers are there again, but never longer than a small part of a commit.
// For the same reason a small batch is not committed beside another commit: the fixed cost of a commit is paid once for
// everything that waits.
//
// A store that does not answer must not fill the memory, nor keep callers waiting forever. What waits is bounded, and
// the rest is refused at once. Items that have waited for the timeout are answered that nothing was done. A commit has
// the time that the first of its callers has left, or a quarter of the timeout if that is more. Where a store answers,
// but slower than calls arrive, the bound may be tighter: then what waits can be committed within that time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/failure.h"
#include "core/invariant.h"
#include "engine/reply.h"
#include "store/call_deadline.h"

namespace hapax {

struct LaneLimits {
  Duration timeout = kStoreTimeout;
  std::size_t items = 50'000;  // that wait; or one put() of more
  std::size_t bytes = std::size_t{256} << 20;
  std::optional<Duration> backlog =
      std::nullopt;  // what the first that waits may have waited while others are committed
};

template <class Item, class Outcome>
class Lane {
 public:
  using Commit = std::function<std::vector<Outcome>(std::span<const Item>)>;
  using Done = Reply<std::vector<Outcome>>;

  // `commit` returns one outcome for each item, or throws. When it throws outcome_unknown and `repeatable`, the same
  // batch is sent again, until the store knows. A batch has at most `max_batch` items, or one put() of more. With
  // several `parallelism`, that many calls of `commit` run at once, but a further one only for enough items to make it
  // worth it. The owner must call expire() regularly.
  Lane(Commit commit, std::size_t max_batch, bool repeatable, std::size_t parallelism = 1, std::size_t worth_items = 1,
       LaneLimits limits = {})
      : commit_(std::move(commit)),
        max_batch_(max_batch),
        repeatable_(repeatable),
        worth_items_(worth_items),
        limits_(limits) {
    for (std::size_t i = 0; i < parallelism; ++i) threads_.emplace_back([this] { run(); });
  }

  ~Lane() { stop(); }

  // Answers on one of the lane's threads once the items are committed, together and in their order. `bytes` is their
  // approximate size.
  void put(std::vector<Item> items, Done done, std::size_t bytes = 0) {
    Failure refusal(Failure::Code::stopped, "the engine is shutting down");
    {
      std::lock_guard lock(mutex_);
      if (!stopping_ && has_room(items.size(), bytes)) {
        items_waiting_ += items.size();
        bytes_waiting_ += bytes;
        waiting_.push_back(
            {std::move(items), std::move(done), bytes, CallDeadline::Clock::now() + limits_.timeout, commits_});
        wake_if_ready();
        return;
      }
      if (!stopping_) refusal = Failure(Failure::Code::unavailable, "too much waits for the store already");
    }
    done(std::make_exception_ptr(refusal));
  }

  // Answers what has waited too long.
  void expire() {
    std::vector<Group> late;
    {
      std::lock_guard lock(mutex_);
      const auto now = CallDeadline::Clock::now();
      while (!waiting_.empty() && waiting_.front().deadline <= now) late.push_back(take_first());
      failures_ += static_cast<std::int64_t>(!late.empty());
    }
    fail(late, std::make_exception_ptr(Failure(Failure::Code::unavailable,
                                               "the store has not answered the calls before this one in time")));
  }

  // Commits what was put, then ends the threads. Later puts are answered with Failure::stopped.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_if_ready();
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
    std::size_t bytes;
    CallDeadline::Instant deadline;
    std::int64_t commits_before;
  };

  // After this many lost outcomes in a row the store is not coming back soon.
  static constexpr int kMaxRepeats = 5;

  void run() {
    std::vector<Group> groups;
    std::vector<Item> batch;
    while (take(groups, batch)) {
      std::vector<Outcome> outcomes;
      std::exception_ptr failure;
      try {
        const auto soonest = CallDeadline::Clock::now() + limits_.timeout / 4;
        const CallDeadline deadline(std::max(groups.front().deadline, soonest));
        outcomes = commit(batch);
        invariant(outcomes.size() == batch.size(), "a commit gives one outcome for each item");
        ++commits_;
      } catch (...) {
        ++failures_;
        failure = std::current_exception();
      }
      {
        std::lock_guard lock(mutex_);
        --committing_;
        wake_if_ready();
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

  // The longest time that a busy lane gathers.
  static constexpr std::chrono::microseconds kGather{200};
  static constexpr std::size_t kBusy = 8;  // callers in the last commit
  static constexpr std::int64_t kCommitsBehind = 4;
  // A commit that takes this long may be waiting for another transaction: it must not hold up the others.
  static constexpr std::chrono::milliseconds kPatience{5};

  // Waits for work and takes a batch of it. The groups keep their size: their items are moved out, not erased.
  bool take(std::vector<Group>& groups, std::vector<Item>& batch) {
    const std::lock_guard alone(taking_);
    std::unique_lock lock(mutex_);
    if (last_callers_ >= kBusy) {
      enough_ = last_callers_ / 2;
      sleep(lock, std::chrono::steady_clock::now() + kGather);
      enough_ = 1;
    }
    sleep(lock, std::nullopt);
    while (!waiting_.empty() && (groups.empty() || batch.size() + waiting_.front().items.size() <= max_batch_)) {
      Group group = take_first();
      for (Item& item : group.items) batch.push_back(std::move(item));
      groups.push_back(std::move(group));
    }
    last_callers_ = groups.size();
    if (!groups.empty()) ++committing_;
    return !groups.empty();
  }

  // With the lock held, as all below.
  Group take_first() {
    Group group = std::move(waiting_.front());
    invariant(items_waiting_ >= group.items.size() && bytes_waiting_ >= group.bytes, "what waits has been counted");
    waiting_.pop_front();
    items_waiting_ -= group.items.size();
    bytes_waiting_ -= group.bytes;
    return group;
  }

  bool has_room(std::size_t items, std::size_t bytes) const {
    if (waiting_.empty()) return true;
    return items_waiting_ + items <= limits_.items && bytes_waiting_ + bytes <= limits_.bytes && !is_behind();
  }

  // More waits than the commits that go on take away. A single commit that hangs says nothing about that.
  bool is_behind() const {
    if (!limits_.backlog) return false;
    const Group& first = waiting_.front();
    const auto waited = CallDeadline::Clock::now() - (first.deadline - limits_.timeout);
    return waited > *limits_.backlog && commits_ - first.commits_before >= kCommitsBehind;
  }

  bool is_ready() const {
    return stopping_ || (waiting_.size() >= enough_ && (committing_ == 0 || items_waiting_ >= worth_items_));
  }

  // Waits until there is enough to commit; or until then; or until the items have waited long for the commit in flight.
  void sleep(std::unique_lock<std::mutex>& lock, std::optional<std::chrono::steady_clock::time_point> until) {
    while (!is_ready()) {
      is_asleep_ = true;
      if (until) {
        if (arrived_.wait_until(lock, *until) == std::cv_status::timeout) break;
      } else if (committing_ == 0) {
        arrived_.wait(lock);
      } else if (arrived_.wait_for(lock, kPatience) == std::cv_status::timeout && !waiting_.empty()) {
        break;
      }
    }
    is_asleep_ = false;
  }

  void wake_if_ready() {
    if (!is_asleep_ || !is_ready()) return;
    is_asleep_ = false;
    arrived_.notify_one();
  }

  std::vector<Outcome> commit(std::span<const Item> batch) {
    for (int repeats = 0;; ++repeats) {
      try {
        return commit_(batch);
      } catch (const Failure& failure) {
        const bool unknown = failure.code() == Failure::Code::outcome_unknown;
        // A repeat that did nothing does not say what the previous try did.
        if (!unknown && repeats > 0 && failure.safe_to_retry()) {
          throw Failure(Failure::Code::outcome_unknown, failure.what(), failure.for_clients());
        }
        if (!unknown || !repeatable_ || repeats == kMaxRepeats || CallDeadline::is_over()) throw;
      }
    }
  }

  const Commit commit_;
  const std::size_t max_batch_;
  const bool repeatable_;
  const std::size_t worth_items_;
  const LaneLimits limits_;
  std::mutex taking_;  // one thread at a time waits for work
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Group> waiting_;
  std::size_t items_waiting_ = 0, bytes_waiting_ = 0;
  std::size_t enough_ = 1;        // waiting groups, for the thread to be woken
  std::size_t committing_ = 0;    // threads
  bool is_asleep_ = false;        // the thread that waits for work
  std::size_t last_callers_ = 0;  // that the last commit answered
  bool stopping_ = false;
  std::atomic<std::int64_t> commits_ = 0, failures_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace hapax
