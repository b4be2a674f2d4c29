// Waiting claims: by queue, and which ones to wake.
//
// Invariant: a call that found nothing goes to sleep only if nothing was announced for its queues since it claimed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/timer.h"
#include "store/store.h"

namespace hapax {

// Each execution of the outcome with the events that belong to it.
std::vector<Claimed> with_events(ClaimOutcome outcome);

class ClaimDesk {
 public:
  // `handed_out` is called with every claimed execution, before the caller gets it; `give_back` gets those that were
  // claimed for a caller that has hung up.
  struct Hooks {
    std::function<void(const std::vector<Claimed>&)> handed_out;
    std::function<void(const std::vector<Claimed>&)> give_back;
  };

  ClaimDesk(Store& store, Timer& timer, Hooks hooks, LaneLimits limits = {});

  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply);

  struct QueueKey {
    std::string name_space, queue;
    Kind kind = Kind::task;
    std::string type = {};  // empty: of a claim that takes any type; or of a change in which it is not known

    auto operator<=>(const QueueKey&) const = default;
  };
  using Counts = std::map<QueueKey, std::size_t>;

  class Loan;
  // Lends waiting calls to a verb of the store, which may hand them what it makes claimable. Either those that these
  // submissions may need, at once; or those that wait by the time the verb knows what it can hand out.
  Loan lend(std::span<const Submission> submissions);
  Loan lend_late();

  // That many executions of this type became claimable: wakes as many waiting calls that take it, the longest waiting
  // first. If the type is not known: one call for each type that is waited for, and the next if it gets all it wanted.
  void announce(const QueueKey& key, std::size_t count);

  // Something may have become claimable anywhere: one call for each queue and type claims, and wakes the next if it
  // gets all it wanted.
  void announce_everywhere();

  // Whether nothing of the type is claimable there, as far as is known: a claim waits for it in vain, or did a moment
  // ago.
  bool is_empty(const QueueKey& key) const;

  // Ends all waits with empty answers; later calls are answered with Failure::stopped.
  void stop();

  std::int64_t waiting() const;
  const Lane<ClaimRequest, ClaimOutcome>& lane() const { return lane_; }
  void expire() { lane_.expire(); }

 private:
  struct Call;
  using Calls = std::map<std::uint64_t, std::shared_ptr<Call>>;  // by arrival
  // What a claim that found nothing saves the next ones: until something is announced, or the clock makes something
  // claimable, or this is old, they need not ask the store.
  struct Empty {
    std::chrono::steady_clock::time_point until;
    std::optional<Time> next_at;
  };
  struct Queue {
    std::uint64_t announced = 0;  // how often, ever
    std::size_t calls = 0;        // that name this queue and type, waiting or claiming
    Calls asleep;
    std::optional<Empty> empty;
  };

  // The same claim again, while it is still under way: it ends, and this one begins when it has ended. True if this one
  // is to begin now.
  bool succeed(const std::shared_ptr<Call>& call);
  void begin_successor(const std::shared_ptr<Call>& ended);
  void begin(const std::shared_ptr<Call>& call);
  void look(const std::shared_ptr<Call>& call);
  void looked(const std::shared_ptr<Call>& call, Answer<std::vector<ClaimOutcome>> answer);
  void deliver(const std::shared_ptr<Call>& call, std::vector<Claimed> claimed);
  bool may_look_again(const std::shared_ptr<Call>& call) const;
  bool sleep_or_end(const std::shared_ptr<Call>& call, const std::optional<Time>& next_at);
  void lend(const Counts& counts, Loan& loan);
  void end_wait(const std::shared_ptr<Call>& call);
  static ClaimRequest request_of(const Call& call);
  void arm(const std::shared_ptr<Call>& call, Time next_at);
  void pass_on(const std::shared_ptr<Call>& call);
  void announce_each(const std::vector<QueueKey>& keys);

  void note_empty(const Call& call, const std::optional<Time>& next_at);

  // With the lock held.
  std::vector<std::uint64_t> announced_for(const Call& call) const;
  std::optional<Empty> known_empty(const Call& call) const;
  void fall_asleep(const std::shared_ptr<Call>& call);
  void wake_up(Call& call);
  void enter(Call& call);
  void leave(Call& call);
  void wake_each(const std::vector<QueueKey>& keys, std::vector<std::shared_ptr<Call>>& woken);
  // The queues whose calls take executions of that key: of its type, and of any.
  struct Takers {
    Queue* exact = nullptr;
    Queue* any = nullptr;

    void note() const;                             // that something was announced
    std::shared_ptr<Call> longest_asleep() const;  // null: none
  };
  Takers takers_of(const QueueKey& key);
  std::vector<QueueKey> known_keys(const QueueKey& of_queue) const;  // of all types

  Store& store_;
  Timer& timer_;
  const Hooks hooks_;
  mutable std::mutex mutex_;
  std::map<QueueKey, Queue> queues_;
  std::map<LeaseSecret, std::weak_ptr<Call>> repeatable_;  // the latest calls of claims that may be said again
  std::map<std::vector<QueueKey>, Timer::Key> alarms_;     // for each set of queues that is waited for
  std::atomic<std::size_t> asleep_ = 0;
  std::uint64_t arrivals_ = 0;
  std::int64_t waiting_ = 0;
  bool stopping_ = false;
  Lane<ClaimRequest, ClaimOutcome> lane_;
};

// Lent calls. Those without a delivery when it goes out of scope claim for themselves: the verb has failed, and its
// outcome is unknown.
class ClaimDesk::Loan {
 public:
  ~Loan();
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  WaitingClaims& waiters() { return waiters_; }
  // The verb is committed: gives the calls what they were handed. Returns what that was.
  std::set<ExecutionId> deliver();

 private:
  friend class ClaimDesk;

  Loan(ClaimDesk& desk, std::span<const Submission> submissions);
  explicit Loan(ClaimDesk& desk);

  ClaimDesk& desk_;
  WaitingClaims waiters_;
  std::vector<std::shared_ptr<Call>> calls_;  // one for each request
};

}  // namespace hapax
