#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/config_flags.h"
#include "core/secret.h"
#include "open/examine_store.h"

namespace hapax {

void add_migrate(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("migrate", "Upgrade the store's schema to this program's version");
  auto flags = std::make_shared<ConfigFlags>();
  flags->add(*command, "--store", "store", "sqlite:FILE, postgres://HOST/DATABASE or s3://BUCKET/PREFIX");
  flags->add_file(*command, "--store-file", "store", "A file with the URL of the store, for one with a password");
  flags->add_config(*command);
  command->callback([&program, &action, flags] {
    action = [&program, flags] {
      const Config config = flags->load(program.environment);
      program.open_store(config.store, {.migrate = true})->migrate();
      if (const auto why_not = set_store_lifecycle(config.store)) {
        program.err << "hapax: warning: " << *why_not << "; if the bucket keeps versions, old ones stay" << std::endl;
      }
      program.out << without_secrets(config.store) << " is up to date" << std::endl;
      return kOk;
    };
  });
}

}  // namespace hapax
