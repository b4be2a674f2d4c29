#include "http/claimed_runs.h"

namespace hapax::http {

namespace {

bool is_of(const LeaseToken& token, const Execution& run) {
  return run.attempt == token.attempt && run.lease_secret == token.secret;
}

}  // namespace

void ClaimedRuns::keep(const Execution& claimed) {
  if (claimed.payload_bytes() > kMostBytes) return;
  auto run = std::make_shared<const Execution>(claimed);
  const std::lock_guard lock(mutex_);
  runs_.insert_or_assign(claimed.id, std::move(run));
  oldest_.push_back(claimed.id);
  for (; oldest_.size() > kMost; oldest_.pop_front()) runs_.erase(oldest_.front());
}

std::shared_ptr<const Execution> ClaimedRuns::find(const LeaseToken& token) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(token.execution);
  return found != runs_.end() && is_of(token, *found->second) ? found->second : nullptr;
}

void ClaimedRuns::forget(const LeaseToken& token) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(token.execution);
  if (found != runs_.end() && is_of(token, *found->second)) runs_.erase(found);
}

}  // namespace hapax::http
