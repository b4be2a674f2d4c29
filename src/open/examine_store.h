// What can be said of a store, and done for it, beyond opening it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/finding.h"

namespace hapax {

// Tries out whether what the URL names is fit to be a store: for s3:// the bucket's permissions, its conditional writes under
// concurrency, its clock; and a warning about the "store" if nobody has made one there yet. Nothing for stores that show it all by
// being opened. Throws Failure::misuse for a wrong URL.
std::vector<Finding> examine_store(const std::string& url);

// For s3://, the lifecycle rules of the bucket; nothing for other stores. Gives back why they could not be set, which is no
// failure: only a bucket with versioning needs them.
std::optional<std::string> set_store_lifecycle(const std::string& url);

}  // namespace hapax
