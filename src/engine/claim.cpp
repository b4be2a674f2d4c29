#include "engine/claim.h"

#include <algorithm>

namespace hapax {

namespace {

constexpr std::size_t kMaxClaimBatch = 256;
constexpr Duration kLongestAlarm{3'600'000};  // whoever is woken too early looks again, and arms the next one
constexpr Duration kAfterFailure{200};         // until somebody else looks for what a failed call was woken for

}  // namespace

std::vector<Claimed> with_events(ClaimOutcome outcome) {
  std::vector<Claimed> claimed;
  claimed.reserve(outcome.executions.size());
  auto events = outcome.events.begin();
  for (Execution& execution : outcome.executions) {
    const bool is_workflow = execution.kind == Kind::workflow;
    claimed.push_back({std::move(execution), is_workflow ? std::move(*events++) : std::vector<Event>()});
  }
  return claimed;
}

struct ClaimDesk::Call : Waiting, std::enable_shared_from_this<Call> {
  enum class State { looking, asleep, ended };

  Call(ClaimDesk& d, ClaimCall c, Reply<std::vector<Claimed>> r)
      : desk(d), call(std::move(c)), reply(std::move(r)), waits(call.wait.count() > 0) {
    for (const std::string& queue : call.queues) {
      if (call.tasks) keys.push_back({call.name_space, queue, Kind::task});
      if (call.workflows) keys.push_back({call.name_space, queue, Kind::workflow});
    }
    std::sort(keys.begin(), keys.end());
  }

  void cancel() override { desk.end_wait(shared_from_this()); }

  ClaimDesk& desk;
  const ClaimCall call;
  const Reply<std::vector<Claimed>> reply;
  const bool waits;
  std::vector<QueueKey> keys;

  // Under the desk's lock.
  State state = State::looking;
  bool over = false;            // the wait has ended, or the caller has hung up
  bool hung_up = false;
  std::uint64_t arrival = 0;
  std::uint64_t announced = 0;  // as of the last look
  std::optional<Timer::Key> deadline;
};

ClaimDesk::ClaimDesk(Store& store, Timer& timer, Hooks hooks)
    : store_(store),
      timer_(timer),
      hooks_(std::move(hooks)),
      lane_([this](std::span<const ClaimRequest> requests) { return store_.claim(requests); }, kMaxClaimBatch, false) {}

std::shared_ptr<Waiting> ClaimDesk::claim(ClaimCall claim_call, Reply<std::vector<Claimed>> reply) {
  auto call = std::make_shared<Call>(*this, std::move(claim_call), std::move(reply));
  if (call->waits) {
    std::lock_guard lock(mutex_);
    if (stopping_) {
      call->over = true;
    } else {
      enter(*call);
      call->deadline = timer_.after(call->call.wait, [weak = std::weak_ptr(call)] {
        if (auto waiting = weak.lock()) waiting->desk.end_wait(waiting);
      });
    }
  }
  look(call);
  return call;
}

void ClaimDesk::look(const std::shared_ptr<Call>& call) {
  if (call->waits) {
    std::lock_guard lock(mutex_);
    call->announced = announced_for(*call);
  }
  ClaimRequest request{.name_space = call->call.name_space,
                       .queues = call->call.queues,
                       .tasks = call->call.tasks,
                       .workflows = call->call.workflows,
                       .limit = call->call.limit,
                       .worker = call->call.worker,
                       .lease = call->call.lease,
                       .secret = LeaseSecret::generate()};
  std::vector<ClaimRequest> requests;
  requests.push_back(std::move(request));
  lane_.put(std::move(requests),
            [this, call](Answer<std::vector<ClaimOutcome>> answer) { looked(call, std::move(answer)); });
}

void ClaimDesk::looked(const std::shared_ptr<Call>& call, Answer<std::vector<ClaimOutcome>> answer) {
  try {
    ClaimOutcome outcome = std::move(std::move(answer).get().front());
    const bool filled = outcome.executions.size() == static_cast<std::size_t>(call->call.limit);
    if (!outcome.executions.empty()) {
      const auto next_at = outcome.next_at;
      std::vector<Claimed> claimed = with_events(std::move(outcome));
      hooks_.handed_out(claimed);
      deliver(call, std::move(claimed));
      if (filled) pass_on(call);
      if (next_at) arm(call, *next_at);
    } else if (sleep_or_end(call, outcome.next_at)) {
      call->reply(std::vector<Claimed>());
    }
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      leave(*call);
    }
    call->reply(std::current_exception());
    timer_.after(kAfterFailure, [this, call] { pass_on(call); });
  }
}

void ClaimDesk::deliver(const std::shared_ptr<Call>& call, std::vector<Claimed> claimed) {
  bool hung_up;
  {
    std::lock_guard lock(mutex_);
    hung_up = call->hung_up;
    leave(*call);
  }
  if (!hung_up) {
    call->reply(std::move(claimed));
  } else {
    hooks_.give_back(claimed);
    call->reply(std::vector<Claimed>());
  }
}

// True if the call is over: it does not wait, its wait has ended, or the engine is stopping.
bool ClaimDesk::sleep_or_end(const std::shared_ptr<Call>& call, const std::optional<Time>& next_at) {
  bool again = false;
  {
    std::lock_guard lock(mutex_);
    if (!call->waits || call->over || stopping_) {
      leave(*call);
      return true;
    }
    if (announced_for(*call) != call->announced) {
      again = true;
    } else {
      call->state = Call::State::asleep;
      for (const QueueKey& key : call->keys) queues_[key].asleep.emplace(call->arrival, call);
    }
  }
  if (again) {
    look(call);
  } else if (next_at) {
    arm(call, *next_at);
  }
  return false;
}

void ClaimDesk::end_wait(const std::shared_ptr<Call>& call) {
  {
    std::lock_guard lock(mutex_);
    if (call->state == Call::State::ended) return;
    call->over = true;
    // A look that is under way decides itself; only a hang-up (nobody listens) changes where its find goes.
    call->hung_up = call->deadline && timer_.cancel(*call->deadline);
    if (call->state == Call::State::looking) return;
    leave(*call);
  }
  call->reply(std::vector<Claimed>());
}

void ClaimDesk::announce(const QueueKey& key, std::size_t count) {
  std::vector<std::shared_ptr<Call>> woken;
  {
    std::lock_guard lock(mutex_);
    const auto found = queues_.find(key);
    if (found == queues_.end()) return;
    wake(found->second, count, woken);
  }
  for (const auto& call : woken) look(call);
}

void ClaimDesk::announce_everywhere() {
  std::vector<std::shared_ptr<Call>> woken;
  {
    std::lock_guard lock(mutex_);
    for (auto& [key, queue] : queues_) wake(queue, 1, woken);
  }
  for (const auto& call : woken) look(call);
}

// One call found all it wanted: there may be more for the next one.
void ClaimDesk::pass_on(const std::shared_ptr<Call>& call) {
  for (const QueueKey& key : call->keys) announce(key, 1);
}

// At that time something becomes claimable by the clock alone: one of the calls for these queues looks then. One alarm
// serves all who wait for the same queues, so that ten thousand of them do not all look at once.
void ClaimDesk::arm(const std::shared_ptr<Call>& call, Time next_at) {
  const auto delay = std::clamp(next_at - store_.now(), Duration(0), kLongestAlarm);
  const auto instant = std::chrono::steady_clock::now() + delay;
  std::lock_guard lock(mutex_);
  const bool anybody = std::any_of(call->keys.begin(), call->keys.end(), [&](const QueueKey& key) {
    const auto found = queues_.find(key);
    return found != queues_.end() && found->second.calls > 0;
  });
  if (!anybody || stopping_) return;
  const auto armed = alarms_.find(call->keys);
  if (armed != alarms_.end()) {
    if (armed->second.first <= instant) return;
    timer_.cancel(armed->second);
  }
  alarms_[call->keys] = timer_.at(instant, [this, keys = call->keys] {
    {
      std::lock_guard lock(mutex_);
      alarms_.erase(keys);
    }
    for (const QueueKey& key : keys) announce(key, 1);
  });
}

void ClaimDesk::stop() {
  std::vector<std::shared_ptr<Call>> asleep;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [key, queue] : queues_) {
      for (auto& [arrival, call] : queue.asleep) asleep.push_back(call);
    }
  }
  for (const auto& call : asleep) end_wait(call);
  lane_.stop();
}

std::int64_t ClaimDesk::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

std::uint64_t ClaimDesk::announced_for(const Call& call) const {
  std::uint64_t announced = 0;
  for (const QueueKey& key : call.keys) {
    if (const auto found = queues_.find(key); found != queues_.end()) announced += found->second.announced;
  }
  return announced;
}

void ClaimDesk::enter(Call& call) {
  call.arrival = ++arrivals_;
  ++waiting_;
  for (const QueueKey& key : call.keys) ++queues_[key].calls;
}

void ClaimDesk::leave(Call& call) {
  if (call.state == Call::State::ended) return;
  call.state = Call::State::ended;
  if (call.arrival == 0) return;
  --waiting_;
  if (call.deadline) timer_.cancel(*call.deadline);
  for (const QueueKey& key : call.keys) {
    const auto found = queues_.find(key);
    found->second.asleep.erase(call.arrival);
    if (--found->second.calls == 0) queues_.erase(found);
  }
}

void ClaimDesk::wake(Queue& queue, std::size_t count, std::vector<std::shared_ptr<Call>>& woken) {
  ++queue.announced;
  while (count > 0 && !queue.asleep.empty()) {
    const std::shared_ptr<Call> call = queue.asleep.begin()->second;
    call->state = Call::State::looking;
    for (const QueueKey& key : call->keys) queues_[key].asleep.erase(call->arrival);
    woken.push_back(call);
    --count;
  }
}

}  // namespace hapax
