#include "store/rules/claim.h"

namespace hapax::rules {

bool was_handed(const ClaimRequest& request, const Execution& execution, Time now) {
  return execution.status == Status::running && execution.lease_secret == request.secret &&
         execution.name_space == request.name_space && execution.lease_expires_at && *execution.lease_expires_at > now;
}

const QueuePolicy* limits_of(const QueuePolicies& policies, const std::string& name_space, const std::string& queue,
                             Kind kind) {
  static const QueuePolicy kUnlimited;
  const QueuePolicy& policy = policies.of(name_space, queue);
  if (policy.paused) return nullptr;
  return kind == Kind::task ? &policy : &kUnlimited;
}

QueueLimits::Verdict QueueLimits::judge(const std::optional<std::string>& key) {
  if (policy_.max_running && counts_.running() + taken_ >= *policy_.max_running) return Verdict::queue_is_full;
  if (key) {
    const auto taken = taken_by_key_.find(*key);
    const std::int64_t here = taken == taken_by_key_.end() ? 0 : taken->second;
    if (counts_.running_with(*key) + here >= policy_.concurrency_limit) return Verdict::key_is_full;
  }
  return is_out_of_rate() ? Verdict::out_of_rate : Verdict::go;
}

bool QueueLimits::is_out_of_rate() {
  if (!policy_.rate_limit) return false;
  RateState trial = rate_;
  held_by_rate_ = hapax::take(*policy_.rate_limit, trial, now_, 1) == 0;
  if (held_by_rate_ && trial != rate_) {  // under a changed limit
    rate_ = trial;
    rate_changed_ = true;
  }
  return held_by_rate_;
}

void QueueLimits::take(const std::optional<std::string>& key) {
  ++taken_;
  if (key) ++taken_by_key_[*key];
  if (!policy_.rate_limit) return;
  hapax::take(*policy_.rate_limit, rate_, now_, 1);
  rate_changed_ = true;
}

std::optional<Time> QueueLimits::next_permit() const {
  return held_by_rate_ ? std::optional(hapax::next_permit(*policy_.rate_limit, rate_, now_)) : std::nullopt;
}

}  // namespace hapax::rules
