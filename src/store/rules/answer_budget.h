// Bounds the answers to a batch of submissions.
#pragma once

#include "store/page.h"
#include "store/store.h"

namespace hapax {

// One for each commit. Duplicates and repeats among the brief submissions get kPageBytes of payloads in all; those
// beyond it go without. Other submissions get everything.
class AnswerBudget {
 public:
  SubmitOutcome bound(const Submission& submission, SubmitOutcome outcome) {
    Execution& owner = outcome.execution;
    const bool has_run = owner.result || owner.error || !owner.failed_attempts.empty();
    const bool is_new = outcome.kind == SubmitOutcome::Kind::created && !has_run;
    if (!submission.brief || is_new || outcome.claimed || outcome.purged || owner.damaged) return outcome;
    const bool is_conflict = outcome.kind == SubmitOutcome::Kind::conflict;  // its answer shows no payload
    if (!is_conflict && budget_.take(owner.payload_bytes())) return outcome;
    owner.input = {};
    owner.result.reset();
    owner.error.reset();
    owner.failed_attempts = {};
    outcome.omitted = !is_conflict;
    return outcome;
  }

 private:
  PageBudget budget_;
};

}  // namespace hapax
