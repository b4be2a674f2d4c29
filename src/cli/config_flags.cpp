#include "cli/config_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "cli/secret_file.h"

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

void ConfigFlags::add_file(CLI::App& command, const std::string& flag, const std::string& key,
                           const std::string& description) {
  auto& value = files_.emplace_back(FlagValue{flag, "server", key, ""});
  command.add_option(flag, value.value, description)->type_name("FILE");
}

Config ConfigFlags::load(const Environment& environment) const {
  std::vector<FlagValue> given;
  std::copy_if(flags_.begin(), flags_.end(), std::back_inserter(given),
               [](const FlagValue& f) { return !f.value.empty(); });
  for (FlagValue file : files_) {
    if (file.value.empty()) continue;
    file.value = read_secret_file(file.flag, file.value);
    given.push_back(std::move(file));
  }
  return load_config(path_.empty() ? std::nullopt : std::optional(path_), environment, given);
}

}  // namespace hapax
