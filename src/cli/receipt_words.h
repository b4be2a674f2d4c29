// The outcome of a submission, as text.
#pragma once

#include <string>

#include "cli/paint.h"
#include "engine/engine.h"

namespace hapax {

// "created 019… in queue default", "already there since 3m ago: 019… completed, result 42". One line, without its
// newline.
std::string describe_receipt(const Receipt& receipt, Time now, const Paint& paint);

// "completed, result 42", "failed after 3 attempts: Timeout: no answer".
std::string describe_state(const Execution& execution, const Paint& paint);

// The one line for a refused submission, and its exit code.
std::string describe_refusal(const Refusal& refusal);
int exit_code_of(const Refusal& refusal);

// Waits for the results of one submission.
SubmitResult submit_one(Engine& engine, const std::string& name_space, SubmitRequest request);

}  // namespace hapax
