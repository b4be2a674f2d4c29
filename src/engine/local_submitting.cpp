// Submitting, through the group commit or into the caller's own transaction.
#include "engine/check_request.h"
#include "engine/store_engine.h"
#include "engine/submit.h"

namespace hapax {

void StoreEngine::submit(const std::string& name_space, std::vector<SubmitRequest> requests,
                         Reply<std::vector<SubmitResult>> reply) {
  if (is_refused(reply, [&] { check_batch(requests.size()); })) return;
  struct Pending {
    std::size_t position;
    Asked asked;
  };
  std::vector<SubmitResult> results(requests.size());
  std::vector<Pending> pending;
  std::vector<Submission> submissions;
  submissions.reserve(requests.size());
  const Time now = store_->now();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto resolved = resolve(name_space, std::move(requests[i]), settings_, options_, ids_.next(now));
    if (auto* refusal = std::get_if<Refusal>(&resolved)) {
      results[i] = std::move(*refusal);
      continue;
    }
    auto& accepted = std::get<ResolvedSubmission>(resolved);
    pending.push_back({i, Asked(accepted)});
    Submission& submission = accepted.submission;
    if (submission.run_here) submission.run_here->secret = run_here_secret(store_->identity(), submission);
    submissions.push_back(std::move(accepted.submission));
  }
  if (submissions.empty()) return reply(std::move(results));

  const std::size_t bytes = bytes_of(submissions);
  lanes_.submit.put(
      std::move(submissions),
      [results = std::move(results), pending = std::move(pending),
       reply = std::move(reply)](Answer<std::vector<SubmitOutcome>> answers) mutable {
        try {
          std::vector<SubmitOutcome> outcomes = std::move(answers).get();
          for (std::size_t i = 0; i < pending.size(); ++i) {
            results[pending[i].position] = answer(std::move(outcomes[i]), pending[i].asked);
          }
        } catch (...) {
          return reply(std::current_exception());
        }
        reply(std::move(results));
      },
      bytes);
}

SubmitResult StoreEngine::submit_through(const std::string& name_space, SubmitRequest request,
                                         const StoreIt& store_it) {
  if (request.run_here) {
    return to_refusal(
        InvalidField("/run_here", "is not for a submission in your own transaction: it has no claim yet"));
  }
  auto resolved = resolve(name_space, std::move(request), settings_, options_, ids_.next(store_->now()));
  if (auto* refusal = std::get_if<Refusal>(&resolved)) return std::move(*refusal);
  const auto& accepted = std::get<ResolvedSubmission>(resolved);
  return answer(store_it(accepted.submission, *settings_.policies()), Asked(accepted));
}

std::vector<SubmitOutcome> StoreEngine::commit_submissions(std::span<const Submission> submissions) {
  const ResultDesk::Mark mark = results_.mark();
  ClaimDesk::Loan loan = claims_.lend(submissions);
  std::vector<SubmitOutcome> outcomes = store_->submit(submissions, loan.waiters());
  const std::set<ExecutionId> handed = loan.deliver();
  const Time now = store_->now();
  Announcements ready;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const SubmitOutcome& outcome = outcomes[i];
    if (submissions[i].dry_run) continue;
    if (outcome.claimed) handed_out({{outcome.execution, {}}});
    switch (outcome.kind) {
      case SubmitOutcome::Kind::duplicate: ++deduplicated_; continue;
      case SubmitOutcome::Kind::conflict:
      case SubmitOutcome::Kind::id_taken: ++conflicts_; continue;
      case SubmitOutcome::Kind::created: ++submitted_; break;
    }
    // One that is delayed counts too: whoever waits must learn when to look again.
    const Execution& created = outcome.execution;
    if (created.kind == Kind::workflow && created.status == Status::pending) results_.created_run(created, mark);
    if (!handed.contains(created.id) && !outcome.claimed) {
      unclaimed_.submitted(created);
      ready[{created.name_space, created.queue, created.kind, created.type}] += 1;
    }
    if (const auto due = outcome.execution.due_at()) sweeper_.due_by(*due);
    if (outcome.superseded) {
      results_.closed(*outcome.superseded);
      sweeper_.due_by(now);
    }
    spread(outcome.effects);
  }
  announce(ready);
  return outcomes;
}

}  // namespace hapax
