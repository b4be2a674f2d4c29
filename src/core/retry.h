// When a failed attempt is tried again.
#pragma once

#include <cstdint>

#include "core/id.h"
#include "core/time.h"

namespace hapax {

struct RetryPolicy {
  Duration initial{1000};
  double factor = 2;
  Duration max{60'000};

  bool operator==(const RetryPolicy&) const = default;
};

// The pause after that attempt (1 is the first): exponential, capped, with full jitter. The jitter is derived from the
// execution and the attempt, so that every store and server computes the same instant.
Duration backoff(const RetryPolicy& policy, const ExecutionId& id, std::int32_t attempt);

}  // namespace hapax
