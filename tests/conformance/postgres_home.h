// The PostgreSQL store, in a database of its own on a real server.
#pragma once

#include <memory>

#include "conformance/stores.h"

namespace hapax {

std::unique_ptr<StoreHome> make_postgres_home(bool pooled);  // through a PgBouncer

}  // namespace hapax
