// The rule of submitting: what a submission meets, and what becomes of it.
#pragma once

#include <optional>

#include "store/store.h"

namespace hapax::rules {

// What the rule needs of a store's transaction. What is pointed to is there until something is changed.
class SubmitRows {
 public:
  virtual ~SubmitRows() = default;

  virtual Time now() = 0;
  virtual const QueuePolicies& policies() = 0;

  // The ledger's entry of this execution's identity.
  virtual const LedgerEntry* entry(const Execution& execution) = 0;
  virtual const Execution* owner(const LedgerEntry& entry) = 0;  // null: it was purged
  // What is stored under the id of a submission. A store that knows from the entry of its identity that there is
  // nothing need not look; without an entry it must.
  virtual const Execution* stored(const ExecutionId& id, const LedgerEntry* entry) = 0;

  virtual Effects cancel(const ExecutionId& owner) = 0;
  // `entry` takes the place of the one that the identity has. Absent: it has no identity.
  virtual void add(const Submission& submission, const Execution& execution,
                   const std::optional<LedgerEntry>& entry) = 0;
};

SubmitOutcome submit(SubmitRows& rows, const Submission& submission);

// The same where nothing changes: its first answer if it was sent before, or that of an owner which stands for it.
// Nothing if the submission has to be stored.
std::optional<SubmitOutcome> find_answer(SubmitRows& rows, const Submission& submission);

// The answer to a new submission whose identity and id were free.
SubmitOutcome created(const Submission& submission, Time now);

}  // namespace hapax::rules
