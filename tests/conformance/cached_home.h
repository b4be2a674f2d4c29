// SQLite with Redis in front of it.
#pragma once

#include <memory>

#include "conformance/stores.h"

namespace hapax {

// `unsteady`: in between, Redis is flushed, killed and started again.
std::unique_ptr<StoreHome> make_cached_home(bool unsteady);

}  // namespace hapax
