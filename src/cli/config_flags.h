// The flags that stand for keys of the configuration.
#pragma once

#include <list>
#include <string>

#include "config/config.h"

namespace CLI {
class App;
}

namespace hapax {

// Must live as long as the command it was added to.
class ConfigFlags {
 public:
  void add_config(CLI::App& command);
  void add(CLI::App& command, const std::string& flag, const std::string& key, const std::string& description,
           const std::string& section = "server");

  // The same for a value in a file, because it is a secret.
  void add_file(CLI::App& command, const std::string& flag, const std::string& key, const std::string& description);

  // The configuration, overridden by the given flags. Throws ConfigError or CommandError.
  Config load(const Environment& environment) const;

 private:
  std::string path_;
  std::list<FlagValue> flags_, files_;  // lists: CLI11 keeps references to the values
};

}  // namespace hapax
