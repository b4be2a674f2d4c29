// Creating what is new, a batch by one statement. It stands for rules::submit() on a submission whose identity and id
// are free; and where one waiting claim can take all of a batch, for handing them out, too.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/postgres/connection/runner.h"

namespace hapax::postgres {

// Tells the items of a batch apart: what an earlier one has touched must wait for it.
class Touched {
 public:
  bool contains(const Execution& execution) const {
    return ids_.contains(execution.id) || (execution.identity && hashes_.contains(execution.identity->hash));
  }
  void add(const Execution& execution) {
    ids_.insert(execution.id);
    if (execution.identity) hashes_.insert(execution.identity->hash);
  }

 private:
  std::set<ExecutionId> ids_;
  std::set<IdentityHash> hashes_;
};

inline QueueName queue_of(const Submission& submission) {
  return {submission.execution.name_space, submission.execution.queue, submission.execution.kind};
}

namespace fast {

class Create {
 public:
  Create(Runner& runner, std::span<const Submission> submissions, WaitingClaims& waiters,
         std::vector<SubmitOutcome>& outcomes)
      : runner_(runner), submissions_(submissions), waiters_(waiters), outcomes_(outcomes) {}

  // Gives back those that were not created, of which some may be new all the same. Where all of them are expected to be
  // new, nothing is looked up first.
  std::vector<std::size_t> operator()(const std::vector<std::size_t>& items, bool all_new);
  bool any_created() const { return any_created_; }

 private:
  using Added = std::unordered_map<ExecutionId, RowLocation>;

  std::vector<std::size_t> left_of(const std::vector<std::size_t>& tried, const Added& added,
                                   std::vector<std::size_t> rest);
  bool one_takes_all(const std::vector<std::size_t>& tried, const QueuePolicies& policies);
  std::optional<Added> create_started(const std::vector<std::size_t>& tried, const QueuePolicies& policies);
  Added take_created(const Rows& rows, const std::vector<std::size_t>& tried);
  Added create_and_hand_out(Connection& connection, const Statement& create, const Parameters& parameters,
                            const std::vector<std::size_t>& tried);
  void write(Batch& batch, const Submission& submission);

  Runner& runner_;
  std::span<const Submission> submissions_;
  WaitingClaims& waiters_;
  std::vector<SubmitOutcome>& outcomes_;
  Time now_;  // of the last statement that created any
  bool any_created_ = false;
};

}  // namespace fast
}  // namespace hapax::postgres
