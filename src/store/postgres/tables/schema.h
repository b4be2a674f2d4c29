// The tables, as numbered migrations, in a schema of their own.
#pragma once

#include <cstdint>
#include <string>

#include "store/postgres/connection/connection.h"

namespace hapax::postgres {

std::int64_t newest_schema_version();

// Brings the schema up to the newest version, one process at a time. Throws Failure::misuse if it has a newer one.
void migrate(Connection& connection, const std::string& schema);

// Migrates an empty database if it may create, and one of an older version if it may migrate that. Throws
// Failure::misuse if the version is another than this program's.
void prepare_schema(Connection& connection, const std::string& schema, bool create, bool migrate_older);

// Throws Failure::misuse if a pooler gives what this connection has set to others: it hands out server connections for
// a transaction each, and the options do not say so.
void refuse_pooler(Connection& connection, const ConnectionOptions& options);

// What identifies the store in the schema (see store_identity_sql). Throws Failure::unavailable while a dump is being
// restored.
std::string read_identity(Connection& connection, const std::string& schema);

}  // namespace hapax::postgres
