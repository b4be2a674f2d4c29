#include "cli/config_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

namespace hapax {

void ConfigFlags::add_config(CLI::App& command) {
  command.add_option("--config", path_, "The configuration file (default: hapax.toml, if it is there)")
      ->type_name("FILE");
}

void ConfigFlags::add(CLI::App& command, const std::string& flag, const std::string& key,
                      const std::string& description, const std::string& section) {
  auto& value = flags_.emplace_back(FlagValue{flag, section, key, ""});
  command.add_option(flag, value.value, description)->type_name("");
}

Config ConfigFlags::load(const Environment& environment) const {
  std::vector<FlagValue> given;
  std::copy_if(flags_.begin(), flags_.end(), std::back_inserter(given),
               [](const FlagValue& f) { return !f.value.empty(); });
  return load_config(path_.empty() ? std::nullopt : std::optional(path_), environment, given);
}

}  // namespace hapax
