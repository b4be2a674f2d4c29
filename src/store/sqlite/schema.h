// The tables, as numbered migrations.
#pragma once

#include "store/sqlite/connection.h"

namespace hapax::sqlite {

// What PRAGMA application_id says of a Hapax database: "Hapx".
constexpr std::int64_t kApplicationId = 0x48617078;

std::int64_t newest_schema_version();

// Makes sure the file is Hapax's and of this program's schema; an empty one is migrated, an older one if
// `migrate_older`. Throws as open_sqlite_store says.
void prepare_schema(Connection& connection, bool migrate_older = false);

// Runs the migrations that are missing, in one transaction. Throws Failure::misuse if the schema is newer than this
// program.
void migrate(Connection& connection);

// The identity of the data, drawn when the tables were made.
inline constexpr const char* kSelectIdentity = "SELECT hex(identity) FROM store";
inline std::string to_identity(const Run& run) { return std::string(run.text(0)); }

}  // namespace hapax::sqlite
