#include "store/cache/cached_store.h"
#include "store/rules/answer_budget.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "store/cache/redis_keeper.h"
#include "store/rules/new_execution.h"

namespace hapax {

namespace {

// Larger ones would fill the connection, and the time there is for it.
constexpr std::size_t kLargestText = 16 * 1024;

// An entry that is not asked for again leaves Redis after this.
constexpr Duration kLongestStay = std::chrono::days(1);

bool keeps_completed_owner(const Submission& submission) {
  return decide(Status::completed, submission.reuse) == Verdict::duplicate;
}

// The submissions of a batch that a completed owner may stand for: not those of an identity that another submission of
// the batch may take away.
std::vector<std::size_t> answerable(std::span<const Submission> submissions) {
  std::set<IdentityHash> changing;
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const Submission& submission = submissions[i];
    if (!submission.execution.identity || submission.dry_run) continue;
    if (keeps_completed_owner(submission)) {
      candidates.push_back(i);
    } else {
      changing.insert(submission.execution.identity->hash);
    }
  }
  std::erase_if(candidates, [&](std::size_t i) { return changing.contains(submissions[i].execution.identity->hash); });
  return candidates;
}

class RedisCachedStore final : public CachedStore {
 public:
  RedisCachedStore(std::shared_ptr<Store> store, const CacheOptions& options)
      : CachedStore(std::move(store)),
        keeper_(
            options, [this](const IdentityHash& hash) { return cache_key(hash, store_->identity()); },
            [this](const IdentityHash& hash) { return fetch(hash); }) {}

  CacheCounters counters() const override {
    return {hits_, misses_, refuted_, garbage_, keeper_.stored(), keeper_.refused(), keeper_.troubles()};
  }
  bool connected() const override { return keeper_.connected(); }
  bool settle(Duration wait) override { return keeper_.settle(wait); }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    const std::vector<std::size_t> candidates = answerable(submissions);
    if (candidates.empty()) return store_->submit(submissions, waiters);

    std::vector<std::optional<SubmitOutcome>> answered = answer(submissions, candidates);
    std::vector<SubmitOutcome> outcomes;
    if (std::none_of(answered.begin(), answered.end(), [](const auto& one) { return one.has_value(); })) {
      outcomes = store_->submit(submissions, waiters);
    } else {
      outcomes = submit_rest(submissions, answered, waiters);
    }
    store_soon(submissions, candidates, outcomes, answered);
    return outcomes;
  }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    {
      const std::lock_guard lock(policies_mutex_);
      policies_ = policies;
    }
    store_->set_policies(std::move(policies));
  }

 private:
  std::shared_ptr<const QueuePolicies> policies() {
    const std::lock_guard lock(policies_mutex_);
    return policies_;
  }

  // An outcome for each submission that Redis and the ledger together can answer.
  std::vector<std::optional<SubmitOutcome>> answer(std::span<const Submission> submissions,
                                                   const std::vector<std::size_t>& candidates) {
    std::vector<std::optional<SubmitOutcome>> answered(submissions.size());
    const auto cached = look_up(submissions, candidates);
    std::vector<OwnerQuery> queries;
    for (const auto& [i, identity] : cached) {
      const Execution& execution = submissions[i].execution;
      queries.push_back({name_scope(execution.identity->scope, execution.type, execution.queue),
                         identity.entry.identity.hash, execution.id});
    }
    if (queries.empty()) return answered;

    std::vector<std::optional<ExecutionId>> owners;
    try {
      owners = store_->owners(queries);
    } catch (const Failure&) {
      return answered;  // submitting tells it better
    }
    const Time now = store_->now();
    const auto rules = policies();
    AnswerBudget budget;
    for (std::size_t n = 0; n < cached.size(); ++n) {
      const auto& [i, identity] = cached[n];
      if (owners[n] == identity.owner.id) answered[i] = meet(submissions[i], identity, *rules, now);
      if (answered[i]) answered[i] = budget.bound(submissions[i], *std::move(answered[i]));
      ++(answered[i] ? hits_ : refuted_);
    }
    return answered;
  }

  std::vector<std::pair<std::size_t, CachedIdentity>> look_up(std::span<const Submission> submissions,
                                                              const std::vector<std::size_t>& candidates) {
    std::vector<IdentityHash> hashes;
    for (const std::size_t i : candidates) hashes.push_back(submissions[i].execution.identity->hash);
    std::vector<std::pair<std::size_t, CachedIdentity>> found;
    const auto texts = keeper_.look_up(hashes);
    if (!texts) return found;
    for (std::size_t n = 0; n < candidates.size(); ++n) {
      if (!(*texts)[n]) {
        ++misses_;
      } else if (auto identity = read_cached(*(*texts)[n], hashes[n])) {
        found.emplace_back(candidates[n], *std::move(identity));
      } else {
        ++garbage_;
      }
    }
    return found;
  }

  // The store's answer for an unchanged cached entry; nothing if the entry has expired.
  static std::optional<SubmitOutcome> meet(const Submission& submission, const CachedIdentity& identity,
                                           const QueuePolicies& policies, Time now) {
    const Execution& execution = submission.execution;
    const auto& [entry, owner] = identity;
    const Duration retention = policies.retention(owner);
    if (entry.name_space != execution.name_space || !is_live(entry, &owner, retention, now)) return std::nullopt;
    SubmitOutcome outcome;
    outcome.kind = meet_owner(submission, owner);
    outcome.execution = owner;
    outcome.expires_at = dies_at(entry, &owner, retention);
    return outcome;
  }

  std::vector<SubmitOutcome> submit_rest(std::span<const Submission> submissions,
                                         std::vector<std::optional<SubmitOutcome>>& answered, WaitingClaims& waiters) {
    std::vector<Submission> rest;
    for (std::size_t i = 0; i < submissions.size(); ++i) {
      if (!answered[i]) rest.push_back(submissions[i]);
    }
    std::vector<SubmitOutcome> stored;
    if (!rest.empty()) stored = store_->submit(rest, waiters);
    std::vector<SubmitOutcome> outcomes;
    outcomes.reserve(submissions.size());
    auto next = stored.begin();
    for (auto& one : answered) outcomes.push_back(one ? *std::move(one) : std::move(*next++));
    return outcomes;
  }

  // What the store has answered with a completed owner is worth keeping: it is being asked for.
  void store_soon(std::span<const Submission> submissions, const std::vector<std::size_t>& candidates,
                  const std::vector<SubmitOutcome>& outcomes,
                  const std::vector<std::optional<SubmitOutcome>>& answered) {
    std::vector<IdentityHash> hashes;
    for (const std::size_t i : candidates) {
      const SubmitOutcome& outcome = outcomes[i];
      if (answered[i] || outcome.kind == SubmitOutcome::Kind::created || outcome.purged) continue;
      if (outcome.execution.status == Status::completed) hashes.push_back(submissions[i].execution.identity->hash);
    }
    keeper_.store_soon(hashes);
  }

  std::optional<RedisKeeper::Storable> fetch(const IdentityHash& hash) {
    std::optional<FoundIdentity> found;
    try {
      found = store_->find_identity(hash);
    } catch (const Failure&) {
      return std::nullopt;
    }
    if (!found || !found->live || !found->owner || found->owner->status != Status::completed) return std::nullopt;
    const CachedIdentity identity{std::move(found->entry), *std::move(found->owner)};
    const Duration left = found->expires_at ? *found->expires_at - store_->now() : kLongestStay;
    RedisKeeper::Storable storable{write_cached(identity), std::min(left, kLongestStay)};
    if (storable.expires_in < Duration(1) || storable.text.size() > kLargestText) return std::nullopt;
    // What has parts that the text has no room for, such as steps of workflows, is not cached.
    if (read_cached(storable.text, hash) != identity) return std::nullopt;
    return storable;
  }

  std::mutex policies_mutex_;
  std::shared_ptr<const QueuePolicies> policies_ = std::make_shared<QueuePolicies>();
  std::atomic<std::int64_t> hits_ = 0, misses_ = 0, refuted_ = 0, garbage_ = 0;
  RedisKeeper keeper_;
};

}  // namespace

std::unique_ptr<CachedStore> open_cached_store(std::shared_ptr<Store> store, CacheOptions options) {
  return std::make_unique<RedisCachedStore>(std::move(store), options);
}

}  // namespace hapax
