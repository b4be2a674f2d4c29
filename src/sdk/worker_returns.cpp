// What a worker keeps of its claims, and what it gives back unstarted.
#include <algorithm>

#include "sdk/thrown.h"
#include "sdk/worker.h"

namespace hapax::detail {

namespace {

constexpr std::size_t kMostUnknownTypes = 1000;  // that are reported

}  // namespace

// Queues what this worker knows and has room for; gives back the rest. With the lock held.
void Worker::take(const Claiming& claiming, std::vector<Claimed> executions) {
  std::int32_t taken = 0, unknown = 0;
  for (Claimed& each : executions) {
    const bool is_known = each.execution.kind == Kind::workflow || declared_for(tasks_, each.execution.type);
    if (!is_known) {
      ++unknown;
      tell_unknown(each.execution.type);
    }
    if (!is_known || draining_ || taken >= claiming.room) {
      give_back(LeaseToken{each.execution.id, each.execution.attempt, *each.execution.lease_secret});
      continue;
    }
    ++taken;
    auto task = std::make_shared<RunningTask>(std::move(each), &app_);
    held_.emplace(task->token, task);
    queued_.push_back({std::move(task), nullptr});
  }
  more_wait_ = taken > 0 && std::ssize(executions) == claiming.limit;
  if (claiming.tasks) back_off_from_unknown(claiming, taken, unknown);
  if (taken == 0) return;
  last_busy_ = Steady::now();
  taken == 1 ? arrived_.notify_one() : arrived_.notify_all();
}

// After a claim that got only unknown types the next one waits. One that was filled by them is made larger, soon: known
// types may wait behind them. With the lock held.
void Worker::back_off_from_unknown(const Claiming& claiming, std::int32_t taken, std::int32_t unknown) {
  const bool may_hide_others = unknown == claiming.limit && claiming.limit < kMaxClaim;
  passed_over_ = may_hide_others ? 2 * unknown : unknown;
  if (unknown == 0 || taken > 0 || may_hide_others) unknown_pause_ = kFirstUnknownPause;
  if (unknown == 0 || taken > 0) return;
  claim_again_at_ = std::max(claim_again_at_, Steady::now() + unknown_pause_);
  unknown_pause_ = std::min(2 * unknown_pause_, kLongestUnknownPause);
}

// Once for each type. With the lock held.
void Worker::tell_unknown(const std::string& type) {
  if (unknown_types_.size() >= kMostUnknownTypes || !unknown_types_.insert(type).second) return;
  app_.telling().tell(UnknownType{presentable_error(type, "").type});
}

// ---- giving back

// With the lock held.
void Worker::give_back(LeaseToken token) {
  const auto now = Steady::now();
  if (returns_.empty() || returns_.back().again_at != Steady::time_point{}) {
    returns_.push_back({.tokens = {}, .give_up_at = now + options_.lease});
  }
  returns_.back().tokens.push_back(token);
}

// What no thread has started. With the lock held.
void Worker::give_back_queued() {
  std::erase_if(queued_, [&](const Queued& queued) {
    if (queued.turn) return false;
    held_.erase(queued.task->token);
    give_back(queued.task->token);
    return true;
  });
}

// With the lock held.
std::optional<Worker::Return> Worker::next_return() {
  const auto due =
      std::find_if(returns_.begin(), returns_.end(), [](const Return& each) { return each.again_at <= Steady::now(); });
  if (due == returns_.end()) return std::nullopt;
  Return returned = std::move(*due);
  returns_.erase(due);
  ++returning_;
  return returned;
}

// Until the engine has answered: a lease that ends instead would cost an attempt.
void Worker::send_back(Return returned) {
  std::vector<Extension> extensions;
  for (const LeaseToken& token : returned.tokens) extensions.push_back({token, Duration(0), app_.name_space()});
  app_.engine().heartbeat(std::move(extensions), [this, returned](Answer<std::vector<ExtendOutcome>> answer) {
    bool may_try_again = false;
    try {
      std::move(answer).get();
    } catch (const Failure& failure) {
      may_try_again = failure.safe_to_retry() && Steady::now() + returned.pause < returned.give_up_at;
    }
    std::lock_guard lock(mutex_);
    --returning_;
    if (may_try_again) {
      Return again = returned;
      again.again_at = Steady::now() + again.pause;
      again.pause = std::min(2 * again.pause, kLongestPause);
      returns_.push_back(std::move(again));
    }
    changed_.notify_one();
  });
}

// One that cannot run now: do not claim again at once.
void Worker::give_back(const RunningTask& task) {
  {
    std::lock_guard lock(mutex_);
    claim_again_at_ = Steady::now() + kClaimPauseAfterFailure;
    give_back(task.token);
    changed_.notify_one();
  }
  let_go(task);
}

}  // namespace hapax::detail
