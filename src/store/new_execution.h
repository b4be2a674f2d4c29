// How a submission becomes an execution and an entry of the ledger, the same in every store.
#pragma once

#include <optional>

#include "store/store.h"

namespace hapax {

inline Execution new_execution(const Submission& submission, Time now) {
  Execution execution = submission.execution;
  execution.created_at = now;
  execution.run_at = submission.run_at.value_or(now + submission.delay);
  if (!execution.deadline_at && submission.deadline) execution.deadline_at = now + *submission.deadline;
  execution.attempt_limit = execution.max_attempts;
  return execution;
}

// Of an execution with an identity.
inline LedgerEntry new_entry(const Execution& execution, const std::optional<Duration>& ttl) {
  LedgerEntry entry;
  entry.identity = *execution.identity;
  entry.name_space = execution.name_space;
  entry.owner = execution.id;
  entry.input_hash = execution.input_hash;
  entry.created_at = execution.created_at;
  if (ttl) entry.expires_at = execution.created_at + *ttl;
  return entry;
}

}  // namespace hapax
