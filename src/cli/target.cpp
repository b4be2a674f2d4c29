#include "cli/target.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/secret_file.h"
#include "core/name.h"
#include "core/secret.h"
#include "open/engine_options.h"

namespace hapax {

namespace {

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:7373";

// The flag's value, else the variable's, else the default.
std::string first_of(const std::string& flag, const Environment& environment, const std::string& variable,
                     std::string_view otherwise) {
  if (!flag.empty()) return flag;
  const auto found = environment.find(variable);
  return found == environment.end() || found->second.empty() ? std::string(otherwise) : found->second;
}

// The value of a flag, or the content of the other flag's file.
std::string one_of(const char* flag, const std::string& value, const char* file_flag, const std::string& path) {
  if (path.empty()) return value;
  if (!value.empty())
    throw CommandError(kUsage, fmt::format("{} and {} exclude each other; give one", flag, file_flag));
  return read_secret_file(file_flag, path);
}

bool is_server(const std::string& url) { return url.starts_with("http://") || url.starts_with("https://"); }

}  // namespace

void TargetFlags::add(CLI::App& command) {
  command.add_option("--url", url_, "The server (default: $HAPAX_URL, else http://127.0.0.1:7373)")->type_name("URL");
  command.add_option("--store", store_, "Straight on a store instead: sqlite:FILE, postgres://… or s3://…")
      ->type_name("URL");
  command.add_option("--store-file", store_file_, "A file that has the URL of --store in it, for one with a password")
      ->type_name("FILE");
  command.add_option("--token", token_, "The server's token (default: $HAPAX_TOKEN)")->type_name("TOKEN");
  command.add_option("--token-file", token_file_, "A file with the token")->type_name("FILE");
  command.add_option("--namespace", name_space_, "The namespace (default: $HAPAX_NAMESPACE, else default)")
      ->type_name("NAME");
  command
      .add_option("--config", config_path_,
                  "With --store: the configuration file (default: hapax.toml, if it is there)")
      ->type_name("FILE");
  command.add_flag("--json", json_, "Print JSON, for scripts");
}

Target TargetFlags::locate(const Environment& environment) const {
  const std::string store = one_of("--store", store_, "--store-file", store_file_);
  if (!url_.empty() && !store.empty())
    throw CommandError(kUsage, "--url and --store exclude each other; give one of them");
  Target target;
  target.url = store.empty() ? first_of(url_, environment, "HAPAX_URL", kDefaultUrl) : store;
  target.shown = without_secrets(target.url);
  target.remote = is_server(target.url);
  if (store.empty() && !target.remote) {
    throw CommandError(kUsage, fmt::format("{}: \"{}\" is not a server's address; name a store with --store {}",
                                           url_.empty() ? "HAPAX_URL" : "--url", target.shown, target.shown));
  }
  if (!store.empty() && target.remote) {
    throw CommandError(kUsage, fmt::format("--store: \"{0}\" is a server's address; write --url {0}", target.shown));
  }
  target.token = first_of(one_of("--token", token_, "--token-file", token_file_), environment, "HAPAX_TOKEN", "");
  target.name_space = first_of(name_space_, environment, "HAPAX_NAMESPACE", "default");
  const auto wrong =
      is_valid_utf8(target.name_space) ? check_name(target.name_space) : std::optional<std::string>("must be UTF-8");
  if (wrong) throw CommandError(kUsage, "--namespace: the name " + *wrong);
  return target;
}

Config TargetFlags::config(const Environment& environment) const {
  return load_config(config_path_.empty() ? std::nullopt : std::optional(config_path_), environment, {});
}

Target TargetFlags::open(const Program& program) const { return open(program, {.create = false}); }

Target TargetFlags::open_or_create(const Program& program, std::shared_ptr<RequestCounts> counts) const {
  return open(program, {.create = true, .request_counts = std::move(counts)});
}

Target TargetFlags::open(const Program& program, OpenStoreOptions store) const {
  Target target = locate(program.environment);
  OpenEngineOptions options;
  options.token = target.token;
  options.name_space = target.name_space;
  options.store = store;
  if (!target.remote) {
    const Config config = this->config(program.environment);
    options.engine = engine_options(config);
    options.store.timeout = config.store_timeout;
  }
  target.engine = program.open_engine(target.url, std::move(options));
  return target;
}

}  // namespace hapax
