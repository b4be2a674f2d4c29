// Claims that wait for work: who waits where, and who is woken when something arrives.
//
// Invariant: a call that found nothing goes to sleep only if nothing was announced for its queues since it looked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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
  // `handed_out` is told of every execution that was claimed, before the caller is; `give_back` gets those that were
  // claimed for a caller who had hung up meanwhile.
  struct Hooks {
    std::function<void(const std::vector<Claimed>&)> handed_out;
    std::function<void(const std::vector<Claimed>&)> give_back;
  };

  ClaimDesk(Store& store, Timer& timer, Hooks hooks);

  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply);

  struct QueueKey {
    std::string name_space, queue;
    Kind kind = Kind::task;

    auto operator<=>(const QueueKey&) const = default;
  };

  // So many executions became claimable in this queue: wakes as many waiting calls, the longest waiting first.
  void announce(const QueueKey& key, std::size_t count);

  // Something may have become claimable anywhere: one call for each queue looks, and passes the word on if it finds its
  // fill.
  void announce_everywhere();

  // Ends all waits with empty answers; later calls are answered with Failure::stopped.
  void stop();

  std::int64_t waiting() const;
  const Lane<ClaimRequest, ClaimOutcome>& lane() const { return lane_; }

 private:
  struct Call;
  struct Queue {
    std::uint64_t announced = 0;  // how often, ever
    std::size_t calls = 0;        // that name this queue, asleep or looking
    std::map<std::uint64_t, std::shared_ptr<Call>> asleep;  // by arrival
  };

  void look(const std::shared_ptr<Call>& call);
  void looked(const std::shared_ptr<Call>& call, Answer<std::vector<ClaimOutcome>> answer);
  void deliver(const std::shared_ptr<Call>& call, std::vector<Claimed> claimed);
  bool sleep_or_end(const std::shared_ptr<Call>& call, const std::optional<Time>& next_at);
  void end_wait(const std::shared_ptr<Call>& call);
  void arm(const std::shared_ptr<Call>& call, Time next_at);
  void pass_on(const std::shared_ptr<Call>& call);

  // With the lock held.
  std::uint64_t announced_for(const Call& call) const;
  void enter(Call& call);
  void leave(Call& call);
  void wake(Queue& queue, std::size_t count, std::vector<std::shared_ptr<Call>>& woken);

  Store& store_;
  Timer& timer_;
  const Hooks hooks_;
  mutable std::mutex mutex_;
  std::map<QueueKey, Queue> queues_;
  std::map<std::vector<QueueKey>, Timer::Key> alarms_;  // for each set of queues that is waited for
  std::uint64_t arrivals_ = 0;
  std::int64_t waiting_ = 0;
  bool stopping_ = false;
  Lane<ClaimRequest, ClaimOutcome> lane_;
};

}  // namespace hapax
