// The S3 store in a real bucket: under a prefix of its own on a real server.
#pragma once

#include <memory>

#include "conformance/stores.h"

namespace hapax {

std::unique_ptr<StoreHome> make_s3_server_home();

}  // namespace hapax
