// Hands what a verb made claimable to waiting claims, within the verb's transaction: the same rules in every store.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/transition.h"
#include "store/rules/claim.h"

namespace hapax {

// The order of claims.
inline bool goes_before(const Execution& a, const Execution& b) {
  return rules::rank_of(a).goes_before(rules::rank_of(b));
}

// What has become claimable, by the outcome of a verb on one item.
template <class Item, class Outcome>
void add_ready(const Item& item, const Outcome& outcome, std::set<ExecutionId>& ready) {
  for (const Changed& each : outcome.effects.ready) ready.insert(each.id);
  if constexpr (std::is_same_v<Item, Submission>) {
    const bool is_new = outcome.kind == SubmitOutcome::Kind::created && !item.dry_run && !outcome.claimed;
    if (is_new) ready.insert(outcome.execution.id);
  }
}
template <class Item, class Outcome>
std::set<ExecutionId> made_ready(std::span<const Item> items, const std::vector<Outcome>& outcomes) {
  std::set<ExecutionId> ready;
  for (std::size_t i = 0; i < outcomes.size(); ++i) add_ready(items[i], outcomes[i], ready);
  return ready;
}

// Claimable now; no limits apply, and nothing is before it.
inline bool may_be_handed_out(const Execution& execution, const QueuePolicies& policies, Time now) {
  if (execution.damaged) return false;
  if (execution.status != Status::pending || execution.run_at > now || execution.concurrency_key) return false;
  if (rules::is_past_deadline(execution, now)) return false;
  const QueuePolicy& policy = policies.of(execution.name_space, execution.queue);
  if (policy.paused) return false;
  return execution.kind == Kind::workflow || (!policy.max_running && !policy.rate_limit);
}

inline bool takes_type(const ClaimRequest& request, const std::string& type) {
  return request.types.empty() || std::find(request.types.begin(), request.types.end(), type) != request.types.end();
}

inline bool asks_for(const ClaimRequest& request, const Execution& execution) {
  return (execution.kind == Kind::task ? request.tasks : request.workflows) &&
         request.name_space == execution.name_space &&
         std::find(request.queues.begin(), request.queues.end(), execution.queue) != request.queues.end() &&
         takes_type(request, execution.type);
}

// Starts the candidates that a claim waits for, in claim order. Each started one goes to `store`, which saves it and
// returns the events that a workflow's last turn did not know. Returns what was started.
template <class StoreIt>
std::set<ExecutionId> hand_out(WaitingClaims& waiters, std::vector<Execution*> candidates,
                               const QueuePolicies& policies, Time now, StoreIt store) {
  std::set<ExecutionId> handed;
  std::erase_if(candidates, [&](const Execution* each) { return !may_be_handed_out(*each, policies, now); });
  std::sort(candidates.begin(), candidates.end(),
            [](const Execution* a, const Execution* b) { return goes_before(*a, *b); });
  if (waiters.more && !candidates.empty()) waiters.more(candidates);
  waiters.outcomes.resize(waiters.requests.size());
  std::vector<PageBudget> budgets(waiters.requests.size());
  for (Execution* candidate : candidates) {
    for (std::size_t i = 0; i < waiters.requests.size(); ++i) {
      const ClaimRequest& request = waiters.requests[i];
      ClaimOutcome& outcome = waiters.outcomes[i];
      if (std::ssize(outcome.executions) >= request.limit || !asks_for(request, *candidate)) continue;
      if (!budgets[i].take(candidate->payload_bytes())) continue;
      start_attempt(*candidate, request.worker, request.secret, request.lease, now);
      std::vector<Event> news = store(*candidate);
      if (candidate->kind == Kind::workflow) outcome.events.push_back(std::move(news));
      outcome.executions.push_back(*candidate);
      handed.insert(candidate->id);
      break;
    }
  }
  return handed;
}

// Takes out what was found damaged only after it was started. It stays leased, and away from the others of its queue.
inline void drop_damaged(ClaimOutcome& outcome) {
  const bool any = std::any_of(outcome.executions.begin(), outcome.executions.end(),
                               [](const Execution& each) { return each.damaged; }) ||
                   std::any_of(outcome.events.begin(), outcome.events.end(), any_damaged);
  if (!any) return;
  ClaimOutcome sound;
  sound.next_at = outcome.next_at;
  sound.more = outcome.more;
  auto events = outcome.events.begin();
  for (Execution& execution : outcome.executions) {
    const bool is_workflow = execution.kind == Kind::workflow;
    std::vector<Event> news = is_workflow ? std::move(*events++) : std::vector<Event>();
    if (execution.damaged || any_damaged(news)) continue;
    sound.executions.push_back(std::move(execution));
    if (is_workflow) sound.events.push_back(std::move(news));
  }
  outcome = std::move(sound);
}

// What was handed out is not claimable any more.
template <class Outcome>
void forget_handed(std::vector<Outcome>& outcomes, const std::set<ExecutionId>& handed) {
  if (handed.empty()) return;
  for (Outcome& outcome : outcomes) {
    std::erase_if(outcome.effects.ready, [&](const Changed& each) { return handed.contains(each.id); });
  }
}

}  // namespace hapax
