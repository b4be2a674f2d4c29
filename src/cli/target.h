// Where a command works: on a server, or directly on a store.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "engine/engine.h"

namespace hapax {

struct Target {
  std::shared_ptr<Engine> engine;
  std::string url;
  std::string shown;  // for display: without its secrets
  std::string name_space;
  std::string token;
  bool remote = false;
};

// The flags --url, --store, --store-file, --token, --token-file, --namespace, --config and --json. Must live as long as
// the command they were added to.
class TargetFlags {
 public:
  void add(CLI::App& command);

  // On a store the configuration's queues, types and identity rules apply, as on a server. Throws CommandError,
  // ConfigError, BadUrl or Failure.
  Target open(const Program& program) const;

  // The same, but creates a missing store. For commands that write to it. On a store that charges by request, `counts`
  // counts them.
  Target open_or_create(const Program& program, std::shared_ptr<RequestCounts> counts = {}) const;

  // The same without opening: `engine` is left empty.
  Target locate(const Environment& environment) const;

  // The configuration for a store.
  Config config(const Environment& environment) const;

  bool names_store() const { return !store_.empty() || !store_file_.empty(); }
  bool names_url() const { return !url_.empty(); }
  bool json() const { return json_; }

 private:
  Target open(const Program& program, OpenStoreOptions store) const;

  std::string url_, store_, store_file_, token_, token_file_, name_space_, config_path_;
  bool json_ = false;
};

}  // namespace hapax
