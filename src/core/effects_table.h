// The table in the caller's own database that says what once_in() has done: one row for each effect.
#pragma once

#include <string_view>

namespace hapax {

enum class EffectsDialect { postgres, sqlite };

// The statement that creates it, as the Python SDK has it too (python/src/hapax/sql/tables.py).
constexpr std::string_view effects_table_sql(EffectsDialect dialect) {
  return dialect == EffectsDialect::postgres ? R"sql(CREATE TABLE IF NOT EXISTS hapax_effects (
  effect_key text PRIMARY KEY,
  result text,
  created_at timestamptz NOT NULL DEFAULT now()
);
)sql"
                                             : R"sql(CREATE TABLE IF NOT EXISTS hapax_effects (
  effect_key TEXT PRIMARY KEY,
  result TEXT,
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
)sql";
}

}  // namespace hapax
