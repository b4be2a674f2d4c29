// The lifecycle rules of a bucket that Hapax sets.
//
// None of them expires a current object. A record under `idempotency/` may be live for years after it was last written
// (a task that is held back, a long retention or TTL), so its age says nothing; what is dead Hapax removes itself. What
// it cannot remove is what a bucket with versioning keeps of every overwritten or removed object: that expires after a
// day.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "store/s3/client/s3_wire.h"

namespace hapax {

// Sets one rule for each folder under the address' prefix, and leaves the rules of others as they are. Nothing if the
// rules are there now, else why not: the server has no lifecycle rules, or we may not set them.
std::optional<std::string> set_lifecycle(S3Wire& wire, std::span<const std::string> folders);

}  // namespace hapax
