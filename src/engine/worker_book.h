// Who claims here, and what the store is told of it.
//
// A claim notes its worker and goes on. The store is told on a timer's thread: kFirstAfter after a new worker's first
// claim, at once of one that claims something else than before, of the others every kTellEvery as long as they claim. A
// worker that claims in several calls is one worker, with all that it claimed within the last minute.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/timer.h"
#include "engine/working.h"
#include "store/store.h"

namespace hapax {

class WorkerBook {
 public:
  static constexpr Duration kFirstAfter{1000};  // by then it has made all its calls; and one that is gone wrote nothing
  static constexpr Duration kTellEvery{20'000};
  static constexpr Duration kRemember{60'000};
  static constexpr std::size_t kMostWorkers = 10'000, kMostClaimings = 16;  // of a worker; more are not noted

  WorkerBook(Store& store, Timer& timer) : store_(store), timer_(timer) {}

  // Notes a call, and gives the reply to answer it with: until then a call that waits counts as a claim.
  Reply<std::vector<Claimed>> note(const ClaimCall& call, Reply<std::vector<Claimed>> reply);

  // For tests: the clock was moved. What is to be told by now is told before this returns.
  void clock_moved() { tell(Timer::Instant::max()); }

 private:
  // Calls that differ at most in their limits and times.
  struct Claiming {
    std::vector<std::string> queues, types;
    bool tasks = true, workflows = false;
    Time seen_at;
    std::int64_t waiting = 0;

    bool is_of(const ClaimCall& call) const;
    bool is_over(Time now) const { return waiting == 0 && seen_at + kRemember <= now; }
  };
  struct Worker {
    WorkerOrigin origin;
    std::vector<std::shared_ptr<Claiming>> claimings;
    std::optional<WorkerInfo> told;  // last; absent: it is new
    std::optional<Time> tried_at;    // to tell
    bool changed = true;             // since it was told
    bool failed = false;             // the last try

    Time seen_at(Time now) const;
    Timer::Instant first_at;  // when it is to be told first
    // When it is to be told; absent: it has not been seen since it was.
    std::optional<Time> due_at(Time now, Timer::Instant instant) const;
  };
  using Key = std::pair<std::string, std::string>;  // namespace, name

  std::shared_ptr<Claiming> seen(const ClaimCall& call, Time now);
  void tell(Timer::Instant instant);
  std::vector<WorkerInfo> take_due(Time now, Timer::Instant instant);
  void told(const std::vector<WorkerInfo>& workers, bool failed);
  void schedule(Time when, Time now);
  static WorkerInfo info_of(const Key& key, const Worker& worker, Time now);

  Store& store_;
  Timer& timer_;
  std::mutex mutex_;
  std::map<Key, Worker> workers_;
  std::optional<Timer::Key> next_;
};

}  // namespace hapax
