// The tables, as numbered migrations.
#pragma once

#include "store/sqlite/connection.h"

namespace hapax::sqlite {

std::int64_t newest_schema_version();

// Of the tables in this file; 0: there are none of ours.
std::int64_t schema_version(Connection& connection);

// Makes sure that the file has the tables of this program's schema. A file that has none of ours gets them, whatever
// else is in it; an older schema is migrated if `migrate_older`. Throws as open_sqlite_store says.
void prepare_schema(Connection& connection, bool migrate_older = false);

// Runs the migrations that are missing, in one transaction. Throws Failure::misuse if the schema is newer than this
// program.
void migrate(Connection& connection);

// The identity of the data, drawn when the tables were made.
inline constexpr const char* kSelectIdentity = "SELECT hex(identity) FROM hapax_store";
inline std::string to_identity(const Run& run) { return std::string(run.text(0)); }

}  // namespace hapax::sqlite
