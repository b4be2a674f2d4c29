#include "engine/claim.h"

#include <algorithm>
#include <tuple>

#include "core/claim_secret.h"

namespace hapax {

namespace {

constexpr std::size_t kMaxClaimBatch = 256;
constexpr Duration kLongestAlarm{3'600'000};    // a claim that is woken too early looks again and sets the next alarm
constexpr Duration kAfterFailure{200};          // until another claim looks for what a failed call was woken for
constexpr std::chrono::seconds kTrustEmpty{1};  // how long "nothing is claimable" is remembered
constexpr std::size_t kMostQueues = 10'000;     // remembered although no claim waits there

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

namespace {

ClaimDesk::QueueKey key_of(const Execution& execution) {
  return {execution.name_space, execution.queue, execution.kind, execution.type};
}

}  // namespace

struct ClaimDesk::Call : Waiting, std::enable_shared_from_this<Call> {
  enum class State { looking, asleep, ended };

  Call(ClaimDesk& d, ClaimCall c, Reply<std::vector<Claimed>> r)
      : desk(d), call(std::move(c)), reply(std::move(r)), waits(call.wait.count() > 0) {
    const std::vector<std::string> types = call.types.empty() ? std::vector<std::string>{""} : call.types;
    for (const std::string& queue : call.queues) {
      for (const std::string& type : types) {
        if (call.tasks) keys.push_back({call.name_space, queue, Kind::task, type});
        if (call.workflows) keys.push_back({call.name_space, queue, Kind::workflow, type});
      }
    }
    std::sort(keys.begin(), keys.end());
  }

  void cancel() override { desk.end_wait(shared_from_this()); }

  bool is_repeatable() const { return !call.claim_id.empty(); }

  ClaimDesk& desk;
  const ClaimCall call;
  const Reply<std::vector<Claimed>> reply;
  const bool waits;
  LeaseSecret secret;  // if it is repeatable
  std::vector<QueueKey> keys;
  bool has_looked = false;        // used by one look after the other
  std::optional<Empty> presumed;  // likewise: nothing is claimable, and only what was handed out before is looked for

  // Under the desk's lock.
  State state = State::looking;
  std::shared_ptr<Call> successor;  // the same claim said again: begins when this has ended
  bool over = false;                // the wait has ended, or the caller has hung up
  bool hung_up = false;
  std::uint64_t arrival = 0;
  std::vector<std::uint64_t> announced;  // for each key, as of the last look
  std::optional<Timer::Key> deadline;
};

ClaimDesk::ClaimDesk(Store& store, Timer& timer, Hooks hooks, LaneLimits limits)
    : store_(store),
      timer_(timer),
      hooks_(std::move(hooks)),
      lane_([this](std::span<const ClaimRequest> requests) { return store_.claim(requests); }, kMaxClaimBatch, false,
            store_.parallelism().claim, store_.parallelism().worth_items, limits) {}

std::shared_ptr<Waiting> ClaimDesk::claim(ClaimCall claim_call, Reply<std::vector<Claimed>> reply) {
  auto call = std::make_shared<Call>(*this, std::move(claim_call), std::move(reply));
  if (!call->is_repeatable() || succeed(call)) begin(call);
  return call;
}

// What the one before is handed at its end stays claimed: this one finds it by its secret.
bool ClaimDesk::succeed(const std::shared_ptr<Call>& call) {
  call->secret = secret_of_claim(store_.identity(), call->call.name_space, call->call.worker, call->call.claim_id);
  std::shared_ptr<Call> before;
  {
    std::lock_guard lock(mutex_);
    std::weak_ptr<Call>& latest = repeatable_[call->secret];
    before = latest.lock();
    latest = call;
    if (!before || before->state == Call::State::ended) return true;
    before->over = true;
    before->hung_up = false;  // nothing goes back
    if (before->state == Call::State::looking) {
      before->successor = call;
      return false;
    }
    leave(*before);
  }
  before->reply(std::vector<Claimed>());
  return true;
}

void ClaimDesk::begin_successor(const std::shared_ptr<Call>& ended) {
  std::shared_ptr<Call> successor;
  {
    std::lock_guard lock(mutex_);
    if (ended->state == Call::State::ended) successor = std::move(ended->successor);
  }
  if (successor) begin(successor);
}

void ClaimDesk::begin(const std::shared_ptr<Call>& call) {
  std::optional<Empty> empty;
  if (call->waits) {
    std::lock_guard lock(mutex_);
    if (stopping_) {
      call->over = true;
    } else {
      enter(*call);
      call->deadline = timer_.after(call->call.wait, [weak = std::weak_ptr(call)] {
        if (auto waiting = weak.lock()) waiting->desk.end_wait(waiting);
      });
      empty = known_empty(*call);
      if (call->is_repeatable())
        call->presumed = std::exchange(empty, std::nullopt);  // it may have been handed something
      if (empty) fall_asleep(call);
    }
  }
  if (!empty) return look(call);
  if (empty->next_at) arm(call, *empty->next_at);
}

ClaimRequest ClaimDesk::request_of(const Call& call) {
  return {.name_space = call.call.name_space,
          .queues = call.call.queues,
          .tasks = call.call.tasks,
          .workflows = call.call.workflows,
          .types = call.call.types,
          .limit = call.call.limit,
          .worker = call.call.worker,
          .lease = call.call.lease,
          .secret = call.is_repeatable() ? call.secret : LeaseSecret::generate()};
}

void ClaimDesk::look(const std::shared_ptr<Call>& call) {
  if (call->waits) {
    std::lock_guard lock(mutex_);
    call->announced = announced_for(*call);
  }
  std::vector<ClaimRequest> requests;
  requests.push_back(request_of(*call));
  requests.back().repeatable = call->is_repeatable() && !std::exchange(call->has_looked, true);
  if (call->presumed) requests.back().limit = 0;
  lane_.put(std::move(requests),
            [this, call](Answer<std::vector<ClaimOutcome>> answer) { looked(call, std::move(answer)); });
}

void ClaimDesk::looked(const std::shared_ptr<Call>& call, Answer<std::vector<ClaimOutcome>> answer) {
  try {
    ClaimOutcome outcome = std::move(std::move(answer).get().front());
    const auto presumed = std::exchange(call->presumed, std::nullopt);
    if (presumed && outcome.executions.empty()) {
      if (sleep_or_end(call, presumed->next_at)) call->reply(std::vector<Claimed>());
      return begin_successor(call);
    }
    const bool filled = outcome.more || outcome.executions.size() == static_cast<std::size_t>(call->call.limit);
    if (!filled && call->waits) note_empty(*call, outcome.next_at);
    if (!outcome.executions.empty()) {
      const auto next_at = outcome.next_at;
      std::vector<Claimed> claimed = with_events(std::move(outcome));
      hooks_.handed_out(claimed);
      deliver(call, std::move(claimed));
      if (filled) pass_on(call);
      if (next_at) arm(call, *next_at);
    } else if (outcome.more && may_look_again(call)) {
      look(call);
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
  begin_successor(call);
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

// What the claim skipped left no room for the rest. A call that does not wait claims again as well.
bool ClaimDesk::may_look_again(const std::shared_ptr<Call>& call) const {
  std::lock_guard lock(mutex_);
  return !call->over && !stopping_;
}

// True if the call has ended: it does not wait, its wait has ended, or the engine is stopping.
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
      fall_asleep(call);
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
    if (call->state == Call::State::ended || call->successor) return;
    call->over = true;
    // A claim in flight decides itself; only a hang-up changes where its tasks go.
    call->hung_up = !call->deadline || timer_.cancel(*call->deadline);
    if (call->state == Call::State::looking) return;
    leave(*call);
  }
  call->reply(std::vector<Claimed>());
}

void ClaimDesk::announce(const QueueKey& key, std::size_t count) {
  std::vector<std::shared_ptr<Call>> woken;
  {
    std::lock_guard lock(mutex_);
    if (key.type.empty()) {
      wake_each(known_keys(key), woken);
    } else {
      const Takers takers = takers_of(key);
      takers.note();
      for (std::shared_ptr<Call> call; count > 0 && (call = takers.longest_asleep()); --count) {
        wake_up(*call);
        woken.push_back(std::move(call));
      }
    }
  }
  for (const auto& call : woken) look(call);
}

void ClaimDesk::announce_everywhere() {
  std::vector<std::shared_ptr<Call>> woken;
  {
    std::lock_guard lock(mutex_);
    std::vector<QueueKey> keys;
    for (const auto& [key, queue] : queues_) keys.push_back(key);
    wake_each(keys, woken);
  }
  for (const auto& call : woken) look(call);
}

// One call got all it wanted: there may be more for the next one.
void ClaimDesk::pass_on(const std::shared_ptr<Call>& call) { announce_each(call->keys); }

void ClaimDesk::announce_each(const std::vector<QueueKey>& keys) {
  std::vector<std::shared_ptr<Call>> woken;
  {
    std::lock_guard lock(mutex_);
    std::vector<QueueKey> all;
    for (const QueueKey& key : keys) {
      if (!key.type.empty()) {
        all.push_back(key);
      } else {
        for (QueueKey& known : known_keys(key)) all.push_back(std::move(known));
      }
    }
    wake_each(all, woken);
  }
  for (const auto& call : woken) look(call);
}

// At that time something becomes claimable by the clock alone, and one of the calls for these queues claims then. One
// alarm serves all calls that wait for the same queues, so that ten thousand of them do not claim at once.
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
    announce_each(keys);
  });
}

bool ClaimDesk::is_empty(const QueueKey& key) const {
  std::lock_guard lock(mutex_);
  const auto is_known_empty = [&](const QueueKey& known) {
    const auto found = queues_.find(known);
    if (found == queues_.end()) return false;
    const Queue& queue = found->second;
    return !queue.asleep.empty() || (queue.empty && queue.empty->until > std::chrono::steady_clock::now());
  };
  return is_known_empty(key) || is_known_empty({key.name_space, key.queue, key.kind, ""});
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

std::vector<std::uint64_t> ClaimDesk::announced_for(const Call& call) const {
  std::vector<std::uint64_t> announced;
  for (const QueueKey& key : call.keys) {
    const auto found = queues_.find(key);
    announced.push_back(found == queues_.end() ? 0 : found->second.announced);
  }
  return announced;
}

void ClaimDesk::note_empty(const Call& call, const std::optional<Time>& next_at) {
  auto until = std::chrono::steady_clock::now() + kTrustEmpty;
  if (next_at) until = std::min(until, std::chrono::steady_clock::now() + (*next_at - store_.now()));
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < call.keys.size(); ++i) {
    const auto found = queues_.find(call.keys[i]);
    if (found != queues_.end() && found->second.announced == call.announced[i]) found->second.empty = {until, next_at};
  }
}

std::optional<ClaimDesk::Empty> ClaimDesk::known_empty(const Call& call) const {
  Empty known;
  for (const QueueKey& key : call.keys) {
    const std::optional<Empty>& empty = queues_.at(key).empty;
    if (!empty || empty->until <= std::chrono::steady_clock::now()) return std::nullopt;
    if (empty->next_at && (!known.next_at || *empty->next_at < *known.next_at)) known.next_at = empty->next_at;
  }
  return known;
}

void ClaimDesk::fall_asleep(const std::shared_ptr<Call>& call) {
  call->state = Call::State::asleep;
  for (const QueueKey& key : call->keys) queues_[key].asleep.emplace(call->arrival, call);
  ++asleep_;
}

void ClaimDesk::wake_up(Call& call) {
  call.state = Call::State::looking;
  for (const QueueKey& key : call.keys) queues_[key].asleep.erase(call.arrival);
  --asleep_;
}

void ClaimDesk::enter(Call& call) {
  call.arrival = ++arrivals_;
  ++waiting_;
  for (const QueueKey& key : call.keys) ++queues_[key].calls;
}

void ClaimDesk::leave(Call& call) {
  if (call.state == Call::State::ended) return;
  if (call.state == Call::State::asleep) wake_up(call);
  call.state = Call::State::ended;
  const auto latest = call.is_repeatable() ? repeatable_.find(call.secret) : repeatable_.end();
  if (latest != repeatable_.end() && latest->second.lock().get() == &call) repeatable_.erase(latest);
  if (call.arrival == 0) return;
  --waiting_;
  if (call.deadline) timer_.cancel(*call.deadline);
  for (const QueueKey& key : call.keys) {
    const auto found = queues_.find(key);
    const bool is_last = --found->second.calls == 0;
    if (is_last && (!found->second.empty || queues_.size() > kMostQueues)) queues_.erase(found);
  }
}

// One call for each of these keys; none for a key that a woken call takes, too: it wakes the next one if it gets all it
// wanted.
void ClaimDesk::wake_each(const std::vector<QueueKey>& keys, std::vector<std::shared_ptr<Call>>& woken) {
  std::set<const Queue*> covered;
  for (const QueueKey& key : keys) {
    const Takers takers = takers_of(key);
    takers.note();
    if (covered.contains(takers.exact) || covered.contains(takers.any)) continue;
    const std::shared_ptr<Call> call = takers.longest_asleep();
    if (!call) continue;
    wake_up(*call);
    for (const QueueKey& other : call->keys) covered.insert(&queues_.at(other));
    woken.push_back(call);
  }
}

ClaimDesk::Takers ClaimDesk::takers_of(const QueueKey& key) {
  const auto find = [&](const QueueKey& known) {
    const auto found = queues_.find(known);
    return found == queues_.end() ? nullptr : &found->second;
  };
  return {find(key), key.type.empty() ? nullptr : find({key.name_space, key.queue, key.kind, ""})};
}

void ClaimDesk::Takers::note() const {
  for (Queue* queue : {exact, any}) {
    if (!queue) continue;
    ++queue->announced;
    queue->empty.reset();
  }
}

std::shared_ptr<ClaimDesk::Call> ClaimDesk::Takers::longest_asleep() const {
  const Queue* longest = nullptr;
  for (const Queue* queue : {exact, any}) {
    if (!queue || queue->asleep.empty()) continue;
    if (!longest || queue->asleep.begin()->first < longest->asleep.begin()->first) longest = queue;
  }
  return longest ? longest->asleep.begin()->second : nullptr;
}

std::vector<ClaimDesk::QueueKey> ClaimDesk::known_keys(const QueueKey& of_queue) const {
  const auto is_there = [&](const QueueKey& key) {
    return std::tie(key.name_space, key.queue, key.kind) ==
           std::tie(of_queue.name_space, of_queue.queue, of_queue.kind);
  };
  std::vector<QueueKey> keys;
  auto known = queues_.lower_bound({of_queue.name_space, of_queue.queue, of_queue.kind, ""});
  for (; known != queues_.end() && is_there(known->first); ++known) keys.push_back(known->first);
  return keys;
}

// ---- lending

ClaimDesk::Loan ClaimDesk::lend(std::span<const Submission> submissions) { return Loan(*this, submissions); }
ClaimDesk::Loan ClaimDesk::lend_late() { return Loan(*this); }

ClaimDesk::Loan::Loan(ClaimDesk& desk, std::span<const Submission> submissions) : desk_(desk) {
  if (desk_.asleep_ == 0 || !desk_.store_.hands_out()) return;
  Counts counts;
  for (const auto& submission : submissions) ++counts[key_of(submission.execution)];
  desk_.lend(counts, *this);
}

ClaimDesk::Loan::Loan(ClaimDesk& desk) : desk_(desk) {
  waiters_.more = [this](const std::vector<Execution*>& candidates) {
    if (desk_.asleep_ == 0) return;
    Counts counts;
    for (const Execution* candidate : candidates) ++counts[key_of(*candidate)];
    desk_.lend(counts, *this);
  };
}

// As many calls as that many executions may need.
void ClaimDesk::lend(const Counts& counts, Loan& loan) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, count] : counts) {
    const Takers takers = takers_of(key);
    auto left = static_cast<std::int64_t>(count);
    for (std::shared_ptr<Call> call; left > 0 && (call = takers.longest_asleep());) {
      left -= call->call.limit;
      wake_up(*call);
      call->announced = announced_for(*call);
      loan.waiters_.requests.push_back(request_of(*call));
      loan.calls_.push_back(call);
    }
  }
}

ClaimDesk::Loan::~Loan() {
  for (const std::shared_ptr<Call>& call : calls_) desk_.look(call);
}

std::set<ExecutionId> ClaimDesk::Loan::deliver() {
  std::set<ExecutionId> handed;
  const auto calls = std::exchange(calls_, {});
  waiters_.outcomes.resize(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (waiters_.outcomes[i].executions.empty()) {
      if (desk_.sleep_or_end(calls[i], std::nullopt)) calls[i]->reply(std::vector<Claimed>());
      desk_.begin_successor(calls[i]);
      continue;
    }
    std::vector<Claimed> claimed = with_events(std::move(waiters_.outcomes[i]));
    for (const Claimed& each : claimed) handed.insert(each.execution.id);
    desk_.hooks_.handed_out(claimed);
    desk_.deliver(calls[i], std::move(claimed));
    desk_.begin_successor(calls[i]);
  }
  return handed;
}

}  // namespace hapax
