// Examining and migrating a store.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.h"

namespace hapax {

// Checks whether the URL names a usable store. For s3:// it tests the bucket's permissions, its conditional writes
// under concurrency and its clock, and warns if there is no store yet. For sqlite: it checks whether its times lie in
// the future. For other stores, opening them shows everything, and this returns nothing. Throws Failure::misuse for a
// wrong URL.
std::vector<Finding> examine_store(const std::string& url);

// Reads everything that is stored and reports what is damaged. Calls `progress` now and then with the number of items
// read so far. Throws BadUrl, or Failure if the store cannot be opened.
std::vector<Finding> inspect_store(const std::string& url, const std::function<void(std::int64_t)>& progress);

// For s3://, sets the lifecycle rules of the bucket; does nothing for other stores. Returns why they could not be set.
// That is not a failure: only a bucket with versioning needs them.
std::optional<std::string> set_store_lifecycle(const std::string& url);

}  // namespace hapax
