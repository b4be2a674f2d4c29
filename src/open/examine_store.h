// What can be said of a store, and done for it, beyond opening it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.h"

namespace hapax {

// Tries out whether what the URL names is fit to be a store: for s3:// the bucket's permissions, its conditional writes
// under concurrency, its clock; and a warning about the "store" if nobody has made one there yet; for sqlite: whether
// its times lie in the future. Nothing for stores that show it all by being opened. Throws Failure::misuse for a wrong
// URL.
std::vector<Finding> examine_store(const std::string& url);

// Reads everything that is stored, and tells what is damaged. `progress` hears how many items have been read so far,
// now and then. Throws BadUrl, or Failure where the store cannot be opened.
std::vector<Finding> inspect_store(const std::string& url, const std::function<void(std::int64_t)>& progress);

// For s3://, the lifecycle rules of the bucket; nothing for other stores. Gives back why they could not be set, which
// is no failure: only a bucket with versioning needs them.
std::optional<std::string> set_store_lifecycle(const std::string& url);

}  // namespace hapax
