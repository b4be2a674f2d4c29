// hapax effects: the table that once_in() writes in your own database.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "cli/command.h"
#include "core/effects_table.h"

namespace hapax {

void add_effects(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("effects", "Print the table that once_in() needs in your own database");
  auto dialect = std::make_shared<std::string>();
  command->add_option("--sql", *dialect, "The database: postgres or sqlite")
      ->required()
      ->check(CLI::IsMember({"postgres", "sqlite"}));
  command->callback([&program, &action, dialect] {
    action = [&program, dialect] {
      program.out << effects_table_sql(*dialect == "postgres" ? EffectsDialect::postgres : EffectsDialect::sqlite);
      return kOk;
    };
  });
}

}  // namespace hapax
