// Where this process runs, for the workers in it to say.
#pragma once

#include <string>

#include "core/worker_info.h"

namespace hapax::detail {

// Of a worker that is part of this library's release.
WorkerOrigin own_origin(std::string sdk = "c++");

// How a worker is called that was given no name: host and process id.
std::string own_name();

}  // namespace hapax::detail
