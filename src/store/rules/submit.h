// The submit rule: what a submission meets, and what becomes of it.
#pragma once

#include <optional>

#include "store/rules/rows.h"

namespace hapax::rules {

SubmitOutcome submit(Rows& rows, const Submission& submission);

// The same without a change: its first answer if it was sent before, or that of an owner that stands for it. Nothing if
// the submission has to be stored.
std::optional<SubmitOutcome> find_answer(Rows& rows, const Submission& submission);

// The answer to a new submission whose identity and id were free.
SubmitOutcome created(const Submission& submission, Time now);

// Whether the identity of that entry is taken.
bool is_held(Rows& rows, const LedgerEntry& entry);

}  // namespace hapax::rules
