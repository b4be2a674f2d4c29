// Tests what a bucket must offer before Hapax trusts it, on its own objects under `doctor/`, which it removes again.
#pragma once

#include <vector>

#include "core/finding.h"
#include "store/s3/client/s3_objects.h"

namespace hapax {

// Everything, in a few hundred requests: permissions one by one, conditional writes under concurrency, the clock,
// versions.
std::vector<Finding> probe_bucket(S3Wire& wire);

}  // namespace hapax
