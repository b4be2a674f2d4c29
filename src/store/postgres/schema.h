// The tables, as numbered migrations, in a schema of their own.
#pragma once

#include <cstdint>

#include "store/postgres/connection.h"

namespace hapax::postgres {

std::int64_t newest_schema_version();

// Brings the schema up to the newest version, one process at a time. Throws Failure::misuse if it has a newer one.
void migrate(Connection& connection, const std::string& schema);

// Migrates an empty database if it may create, and one of an older version if it may migrate that. Throws Failure::misuse if
// the version is another than this program's.
void prepare_schema(Connection& connection, const std::string& schema, bool create, bool migrate_older);

}  // namespace hapax::postgres
