// Submitting, in up to three steps. Most submissions are new: one statement, which knows no rules, creates those whose
// identity has no entry. The others are read without a lock: most are duplicates, and the answer needs no more. The
// rest take over an identity, and are decided again under its lock.
//
// The next submissions are probably like the last. If those were all new, these are created without reading first. If
// they were mostly duplicates, these are read first.
#include <numeric>
#include <utility>

#include "store/postgres/fast/create.h"
#include "store/postgres/run_rows.h"
#include "store/postgres/verbs/start.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/answer_budget.h"
#include "store/rules/submit.h"

namespace hapax::postgres {

namespace {

class SubmitBatch {
 public:
  SubmitBatch(Runner& runner, std::span<const Submission> submissions, WaitingClaims& waiters)
      : runner_(runner),
        submissions_(submissions),
        waiters_(waiters),
        outcomes_(submissions.size()),
        create_(runner, submissions, waiters, outcomes_) {}

  // What to expect of the next ones, after these.
  Submit::Expected next() const {
    if (known_ + taken_over_ == 0) return Submit::Expected::all_new;
    return 2 * known_ > submissions_.size() ? Submit::Expected::mostly_known : Submit::Expected::mostly_new;
  }

  std::vector<SubmitOutcome> run(Submit::Expected expected) {
    runner_.add_queues(queues());
    std::vector<std::size_t> rest(submissions_.size());
    std::iota(rest.begin(), rest.end(), std::size_t{0});
    if (expected == Submit::Expected::mostly_known) rest = answer_known(rest);
    if (runner_.fast().create && !rest.empty()) rest = create_(rest, expected == Submit::Expected::all_new);
    try {
      if (!rest.empty()) rest = answer_known(rest);
      taken_over_ = rest.size();
      if (!rest.empty()) take_over(rest);
    } catch (const Failure& failure) {
      // The first of them are there already: only sending all of them again tells how it ended.
      if (failure.code() != Failure::Code::unavailable || !(create_.any_created() || any_taken_over_)) throw;
      throw Failure(Failure::Code::outcome_unknown, failure.what(), failure.for_clients());
    }
    return std::move(outcomes_);
  }

 private:
  std::vector<QueueName> queues() const {
    std::vector<QueueName> queues;
    for (const Submission& submission : submissions_) {
      if (submission.dry_run) continue;
      const Execution& execution = submission.execution;
      const bool is_last = !queues.empty() && queues.back().queue == execution.queue &&
                           queues.back().name_space == execution.name_space && queues.back().kind == execution.kind;
      if (!is_last) queues.push_back(queue_of(submission));
    }
    return queues;
  }

  void collect(const std::vector<std::size_t>& items, std::vector<IdentityHash>& hashes,
               std::vector<ExecutionId>& ids) {
    for (const std::size_t i : items) {
      const Execution& execution = submissions_[i].execution;
      if (execution.identity) hashes.push_back(execution.identity->hash);
      ids.push_back(execution.id);
    }
  }

  // What is decided of the items so far.
  struct Progress {
    std::vector<std::size_t> rest;
    Touched touched;
    std::size_t known = 0;
    bool cancels = false;  // an owner, which may change others, so later items have to wait
    AnswerBudget budget;
  };

  // All in one read, unless some of them are long: then in parts, so that no more is in memory than a part.
  std::vector<std::size_t> answer_known(const std::vector<std::size_t>& items) {
    Progress progress;
    progress.budget = budget_;
    if (!answer_part(items, kPageBytes / std::ssize(items), progress)) {
      weigh(items);
      for (const auto& part : parts_of(items)) answer_part(part, std::numeric_limits<std::int64_t>::max(), progress);
    }
    budget_ = progress.budget;
    known_ += progress.known;
    return std::move(progress.rest);
  }

  bool answer_part(const std::vector<std::size_t>& items, std::int64_t longest, Progress& progress) {
    std::vector<IdentityHash> hashes;
    std::vector<ExecutionId> ids;
    collect(items, hashes, ids);
    return runner_.read([&](Workspace& workspace) {
      if (!workspace.read_identities(hashes, ids, longest)) return false;
      Progress next = progress;
      PostgresRows rows(workspace);
      for (const std::size_t i : items) {
        const Execution& execution = submissions_[i].execution;
        const bool waits = next.cancels || next.touched.contains(execution);
        auto outcome = waits ? std::nullopt : rules::find_answer(rows, submissions_[i]);
        if (outcome) {
          outcomes_[i] = next.budget.bound(submissions_[i], *std::move(outcome));
          ++next.known;
        } else {
          next.touched.add(execution);
          next.rest.push_back(i);
          next.cancels = next.cancels || submissions_[i].reuse == Reuse::replace;
        }
      }
      progress = std::move(next);
      return true;
    });
  }

  void weigh(const std::vector<std::size_t>& items) {
    std::vector<IdentityHash> hashes;
    std::vector<ExecutionId> ids;
    for (const std::size_t i : items) {
      const Execution& execution = submissions_[i].execution;
      hashes.push_back(execution.identity ? execution.identity->hash : IdentityHash());
      ids.push_back(execution.id);
    }
    const std::vector<std::int64_t> weights =
        runner_.read([&](Workspace& workspace) { return workspace.weigh(hashes, ids); });
    weights_.resize(submissions_.size());
    for (std::size_t i = 0; i < items.size(); ++i) weights_[items[i]] = weights[i];
  }

  // In their order, each part of about kPageBytes.
  std::vector<std::vector<std::size_t>> parts_of(const std::vector<std::size_t>& items) const {
    std::vector<std::vector<std::size_t>> parts;
    PageBudget budget;
    for (const std::size_t i : items) {
      if (parts.empty() || !budget.take(weights_[i])) {
        parts.emplace_back();
        budget = PageBudget();
        budget.add(weights_[i]);
      }
      parts.back().push_back(i);
    }
    return parts;
  }

  void take_over(const std::vector<std::size_t>& items) {
    if (weights_.empty()) return take_over_part(items);
    for (const auto& part : parts_of(items)) take_over_part(part);
  }

  void take_over_part(const std::vector<std::size_t>& items) {
    std::vector<IdentityHash> hashes;
    std::vector<ExecutionId> ids;
    collect(items, hashes, ids);
    const std::vector<ClaimOutcome> before = waiters_.outcomes;
    const AnswerBudget budget_before = budget_;
    runner_.transact([&](Workspace& workspace) {
      budget_ = budget_before;
      workspace.lock_identities(hashes, ids);
      PostgresRows rows(workspace);
      std::set<ExecutionId> ready;
      for (const std::size_t i : items) {
        outcomes_[i] = budget_.bound(submissions_[i], rules::submit(rows, submissions_[i]));
        add_ready(submissions_[i], outcomes_[i], ready);
      }
      waiters_.outcomes = before;
      if (waiters_.may_be_any()) forget_handed(outcomes_, hand_out(workspace, waiters_, ready));
      return true;
    });
    any_taken_over_ = true;
  }

  Runner& runner_;
  std::span<const Submission> submissions_;
  WaitingClaims& waiters_;
  std::vector<SubmitOutcome> outcomes_;
  AnswerBudget budget_;
  fast::Create create_;
  std::size_t known_ = 0, taken_over_ = 0;
  bool any_taken_over_ = false;
  std::vector<std::int64_t> weights_;  // of the owners; empty: none of them is long
};

}  // namespace

std::vector<SubmitOutcome> Submit::operator()(std::span<const Submission> submissions, WaitingClaims& waiters) {
  if (submissions.empty()) return {};
  SubmitBatch batch(runner_, submissions, waiters);
  std::vector<SubmitOutcome> outcomes = batch.run(expected_);
  expected_ = batch.next();
  return outcomes;
}

bool release_identity(Runner& runner, const std::string& name_space, const IdentityHash& hash) {
  return runner.transact([&](Workspace& workspace) {
    workspace.lock_identities({hash}, {});
    const LedgerEntry* entry = workspace.entry(hash);
    if (!entry || entry->name_space != name_space) return false;
    workspace.remove_entry(hash);
    return true;
  });
}

}  // namespace hapax::postgres
