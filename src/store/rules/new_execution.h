// How a submission becomes an execution and an entry of the ledger, the same in every store.
#pragma once

#include <algorithm>
#include <optional>

#include "store/store.h"

namespace hapax {

// `before` is the ledger entry that it takes over, if there is one. Its owner may have been created by a clock that is
// ahead of this one: a successor is never older than that.
inline Execution new_execution(const Submission& submission, Time now, const LedgerEntry* before = nullptr) {
  Execution execution = submission.execution;
  execution.created_at = before ? std::max(now, before->created_at) : now;
  execution.run_at = submission.run_at.value_or(now + submission.delay);
  if (!execution.deadline_at && submission.deadline)
    execution.deadline_at = execution.created_at + *submission.deadline;
  execution.attempt_limit = execution.max_attempts;
  return execution;
}

// When its ledger entry ends by its TTL.
inline std::optional<Time> entry_expiry(const Execution& execution, const std::optional<Duration>& ttl) {
  if (!execution.identity || !ttl) return std::nullopt;
  return execution.created_at + *ttl;
}

// The answer to a submission that finds an owner that stands for it.
inline SubmitOutcome::Kind meet_owner(const Submission& submission, const Execution& owner) {
  const bool is_same = difference(submission.execution, owner) == Difference::none;
  return is_same ? SubmitOutcome::Kind::duplicate : SubmitOutcome::Kind::conflict;
}

// Of an execution with an identity.
inline LedgerEntry new_entry(const Execution& execution, const std::optional<Duration>& ttl) {
  LedgerEntry entry;
  entry.identity = *execution.identity;
  entry.name_space = execution.name_space;
  entry.owner = execution.id;
  entry.input_hash = execution.input_hash;
  entry.created_at = execution.created_at;
  entry.expires_at = entry_expiry(execution, ttl);
  return entry;
}

}  // namespace hapax
