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
      if (failure.code() != Failure::Code::unavailable || !create_.any_created()) throw;
      throw Failure(Failure::Code::outcome_unknown, failure.what());
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

  std::vector<std::size_t> answer_known(const std::vector<std::size_t>& items) {
    std::vector<IdentityHash> hashes;
    std::vector<ExecutionId> ids;
    collect(items, hashes, ids);
    const AnswerBudget before = budget_;
    return runner_.read([&](Workspace& workspace) {
      budget_ = before;
      workspace.read_identities(hashes, ids);
      PostgresRows rows(workspace);
      std::vector<std::size_t> rest;
      Touched touched;
      std::size_t known = 0;
      bool cancels = false;  // an owner, which may change others, so later items have to wait
      for (const std::size_t i : items) {
        const Execution& execution = submissions_[i].execution;
        auto outcome =
            cancels || touched.contains(execution) ? std::nullopt : rules::find_answer(rows, submissions_[i]);
        if (outcome) {
          outcomes_[i] = budget_.bound(submissions_[i], *std::move(outcome));
          ++known;
        } else {
          touched.add(execution);
          rest.push_back(i);
          cancels = cancels || submissions_[i].reuse == Reuse::replace;
        }
      }
      known_ += known;
      return rest;
    });
  }

  void take_over(const std::vector<std::size_t>& items) {
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
  }

  Runner& runner_;
  std::span<const Submission> submissions_;
  WaitingClaims& waiters_;
  std::vector<SubmitOutcome> outcomes_;
  AnswerBudget budget_;
  fast::Create create_;
  std::size_t known_ = 0, taken_over_ = 0;
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
