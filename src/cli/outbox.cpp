// hapax outbox: the table in your own database that submissions of your transactions wait in.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string_view>

#include "cli/command.h"

namespace hapax {

namespace {

// As the Python SDK has it too (python/src/hapax/sql/tables.py): it writes the rows, and its relay submits them.
constexpr std::string_view kPostgres = R"sql(CREATE TABLE IF NOT EXISTS hapax_outbox (
  id uuid PRIMARY KEY,
  kind text NOT NULL,
  request text NOT NULL,
  refused text,
  created_at timestamptz NOT NULL DEFAULT now()
);
)sql";
constexpr std::string_view kSqlite = R"sql(CREATE TABLE IF NOT EXISTS hapax_outbox (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  request TEXT NOT NULL,
  refused TEXT,
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
)sql";

}  // namespace

void add_outbox(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("outbox", "Print the table that submit_in() needs in your own database");
  auto dialect = std::make_shared<std::string>();
  command->add_option("--sql", *dialect, "The database: postgres or sqlite")
      ->required()
      ->check(CLI::IsMember({"postgres", "sqlite"}));
  command->callback([&program, &action, dialect] {
    action = [&program, dialect] {
      program.out << (*dialect == "postgres" ? kPostgres : kSqlite);
      return kOk;
    };
  });
}

}  // namespace hapax
