"""The tables in the caller's database. `hapax outbox --sql` and `hapax effects --sql` print the same."""

from __future__ import annotations

# A request is kept as the text that it is: jsonb would change its numbers.
OUTBOX = {
    "postgres": """\
CREATE TABLE IF NOT EXISTS hapax_outbox (
  id uuid PRIMARY KEY,
  kind text NOT NULL,
  request text NOT NULL,
  refused text,
  created_at timestamptz NOT NULL DEFAULT now()
);
""",
    "sqlite": """\
CREATE TABLE IF NOT EXISTS hapax_outbox (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  request TEXT NOT NULL,
  refused TEXT,
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
""",
}

EFFECTS = {
    "postgres": """\
CREATE TABLE IF NOT EXISTS hapax_effects (
  effect_key text PRIMARY KEY,
  result text,
  created_at timestamptz NOT NULL DEFAULT now()
);
""",
    "sqlite": """\
CREATE TABLE IF NOT EXISTS hapax_effects (
  effect_key TEXT PRIMARY KEY,
  result TEXT,
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
""",
}
