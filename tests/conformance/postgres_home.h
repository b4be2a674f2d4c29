// The PostgreSQL store, in a database of its own on a real server.
#pragma once

#include <memory>

#include "conformance/stores.h"

namespace hapax {

// Through a PgBouncer if pooled; with these of its shortcuts (store/postgres/fast/switches.h).
std::unique_ptr<StoreHome> make_postgres_home(bool pooled, const std::string& fast);

}  // namespace hapax
