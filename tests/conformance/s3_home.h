// The S3 store, in a bucket of its own.
#pragma once

#include <memory>

#include "conformance/stores.h"

namespace hapax {

std::unique_ptr<StoreHome> make_s3_home();  // a bucket in memory

}  // namespace hapax
