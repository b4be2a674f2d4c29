#include "config/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "config/environment.h"
#include "config/nearest.h"
#include "core/field.h"
#include "core/name.h"

namespace hapax {

namespace {

using Words = std::vector<std::string>;

// With less, a commit on a busy disk would not end in time; with more, clients have given up.
constexpr Duration kShortestStoreTimeout{100}, kLongestStoreTimeout{600'000};
constexpr Duration kShortestGrace{1000}, kLongestGrace{600'000};

// core/settings.h and core/activity.h refuse unknown keys; these lists are for the "did you mean".
const Words kQueueKeys{"retention",         "rate_limit",   "burst",           "max_running",
                       "concurrency_limit", "cancel_grace", "idempotency_ttl", "paused"};
const Words kTypeKeys{"queue",           "identity", "identity_fields", "scope", "reuse",   "on_duplicate",
                      "idempotency_ttl", "priority", "max_attempts",    "retry", "timeout", "deadline"};
const Words kRetryKeys{"initial", "factor", "max"};
const Words kActivityKeys{"name", "enabled", "workflow", "tasks", "trigger", "dedupe_key_strategy"};
const Words kStartedKeys{"type", "input", "queue"};
const Words kTriggerKeys{"cron", "event"};
const Words kCronKeys{"expression",    "timezone", "misfire_policy", "catchup_limit",
                      "misfire_grace", "overlap",  "jitter"};
const Words kEventKeys{"type", "source", "subject", "where", "dedupe_by"};
const Words kWhereKeys{"pointer", "equals", "prefix", "exists"};
const Words kTokenKeys{"token", "token_env", "token_file", "namespace"};
const Words kSections{"server",     "identity", "retention", "queues",   "types",
                      "activities", "cache",    "cleanup",   "requests", "tokens"};

std::optional<LogLevel> parse_log_level(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNames{"trace", "debug", "info", "warn", "error", "off"};
  const auto* found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return {};
  return static_cast<LogLevel>(found - kNames.begin());
}

class ConfigReader {
 public:
  ConfigReader(const ConfigDocument& document, const Environment& environment)
      : document_(document), environment_(environment) {}

  Config read() {
    check_sections();
    try {
      read_server();
      read_engine();
      read_named("queues", kQueueKeys, [&](const std::string& name, const Json& table, const std::string& at) {
        config_.queues[name] = QueueSettings::parse(table, at);
      });
      read_named("types", kTypeKeys, [&](const std::string& name, const Json& table, const std::string& at) {
        if (const Json* retry = table.find("retry")) check_keys(*retry, at + "/retry", kRetryKeys);
        config_.types[name] = TypeSettings::parse(table, at);
      });
      read_named("activities", kActivityKeys, [&](const std::string& name, const Json& table, const std::string& at) {
        config_.activities[name] = read_activity(name, table, at);
      });
      read_named("tokens", kTokenKeys, [&](const std::string& name, const Json& table, const std::string& at) {
        config_.tokens.push_back(read_new_token(name, table, at));
      });
    } catch (const InvalidField& e) {
      throw document_.error(e.pointer(), with_value(e.pointer(), e.what()));
    }
    return std::move(config_);
  }

  // The whole result of read(): only what is in force counts here.
  static void check_exposure(const Config& config, const ConfigDocument& document) {
    if (config.listen.is_loopback() || config.insecure || !config.tokens.empty()) return;
    throw document.error(
        "/server/listen",
        fmt::format("\"{}\" is open to other machines and no tokens are set, so anyone could use this server; add "
                    "[tokens.NAME] token = \"…\", or say [server] insecure = true",
                    config.listen.host));
  }

 private:
  // "must be a duration …", and what it was instead; never for a token.
  std::string with_value(const std::string& pointer, std::string message) const {
    const Json* value = document_.root.at(pointer);
    if (!value || !message.starts_with("must be") || message.find(", not ") != std::string::npos) return message;
    if (pointer.starts_with("/tokens/")) return message;
    if (value->is(Json::Kind::string)) return message + ", not \"" + value->text + "\"";
    if (value->is(Json::Kind::number)) return message + ", not " + value->text;
    if (value->is(Json::Kind::boolean)) return message + (value->boolean ? ", not true" : ", not false");
    return message;
  }

  void check_sections() const {
    const Words server = keys_of("server");
    for (const auto& [name, value] : document_.root.members) {
      const std::string at = "/" + pointer_step(name);
      if (std::find(kSections.begin(), kSections.end(), name) == kSections.end()) {
        if (std::find(server.begin(), server.end(), name) != server.end()) {
          throw document_.error(at, "belongs in a section; write [server] on a line above it");
        }
        throw document_.error(at, "no such section" + suggestion(name, kSections));
      }
      if (!value.is(Json::Kind::object)) throw document_.error(at, fmt::format("is a section; write [{}]", name));
    }
  }

  void check_keys(const Json& table, const std::string& at, const Words& known) const {
    if (!table.is(Json::Kind::object)) throw document_.error(at, "must be a table");
    for (const auto& [name, value] : table.members) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto hint = suggestion(name, known);
      throw document_.error(
          at + "/" + pointer_step(name),
          hint.empty() ? fmt::format("unknown key; known are {}", fmt::join(known, ", ")) : "unknown key" + hint);
    }
  }

  const Json& section(std::string_view name) const {
    static const Json kNothing = json_object();
    const Json* table = document_.root.find(name);
    if (!table) return kNothing;
    check_keys(*table, "/" + std::string(name), keys_of(name));
    return *table;
  }

  void read_server() {
    FieldReader server(section("server"), "/server");
    if (auto text = server.string("listen")) {
      auto address = parse_listen(*text);
      if (const auto* wrong = std::get_if<std::string>(&address)) throw InvalidField("/server/listen", *wrong);
      config_.listen = std::get<ListenAddress>(address);
    }
    if (auto store = server.string("store")) {
      if (store->find(':') == std::string::npos) {
        throw InvalidField("/server/store",
                           fmt::format("\"{0}\" is not a store; a file is written \"sqlite:{0}\"", *store));
      }
      config_.store = *store;
    }
    if (const auto timeout = server.duration("store_timeout")) {
      if (*timeout < kShortestStoreTimeout || *timeout > kLongestStoreTimeout) {
        throw InvalidField("/server/store_timeout", "must be from 100ms to 10m; write e.g. \"10s\"");
      }
      config_.store_timeout = *timeout;
    }
    read_limits(server);
    if (auto hosts = server.strings("hosts")) config_.hosts = checked_hosts(*std::move(hosts));
    if (auto threads = server.integer("threads", 0, 256)) config_.threads = static_cast<std::int32_t>(*threads);
    if (auto level = server.word("log_level", parse_log_level, "trace, debug, info, warn, error, off"))
      config_.log_level = *level;
    if (auto insecure = server.boolean("insecure")) config_.insecure = *insecure;
    server.done();
  }

  void read_limits(FieldReader& server) {
    config_.max_body_bytes = read_size(server, "max_body").value_or(config_.max_body_bytes);
    config_.max_request_bytes = read_size(server, "max_request_bytes").value_or(config_.max_request_bytes);
    config_.max_unsent_bytes = read_size(server, "max_unsent_bytes").value_or(config_.max_unsent_bytes);
    if (auto count = server.integer("max_connections", 1, 1'000'000))
      config_.max_connections = static_cast<std::int32_t>(*count);
    if (auto count = server.integer("max_requests", 1, 1'000'000))
      config_.max_requests = static_cast<std::int32_t>(*count);
    if (const auto grace = server.duration("shutdown_grace")) {
      if (*grace < kShortestGrace || *grace > kLongestGrace) {
        throw InvalidField("/server/shutdown_grace", "must be from 1s to 10m; write e.g. \"10s\"");
      }
      config_.shutdown_grace = *grace;
    }
  }

  // `name` is a literal: the reader keeps a reference.
  static std::optional<std::uint64_t> read_size(FieldReader& server, std::string_view name) {
    const Json* size = server.any(name);
    if (!size) return {};
    const bool scalar = size->is(Json::Kind::number) || size->is(Json::Kind::string);
    const auto bytes = scalar ? parse_size(size->text) : std::nullopt;
    if (!bytes || *bytes == 0 || *bytes > (1ull << 30)) {
      throw InvalidField(fmt::format("/server/{}", name),
                         fmt::format("{} is not a size from 1 byte to 1 GiB; write e.g. \"8MiB\" or 65536",
                                     scalar ? '"' + size->text + '"' : "this"));
    }
    return bytes;
  }

  static std::vector<std::string> checked_hosts(std::vector<std::string> hosts) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const bool is_name = std::all_of(hosts[i].begin(), hosts[i].end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '.' || c == '_';
      });
      if (hosts[i] == "*" || (is_name && !hosts[i].empty())) continue;
      throw InvalidField(fmt::format("/server/hosts/{}", i),
                         fmt::format("\"{}\" is not a host name; write e.g. \"hapax.example.com\", without scheme and "
                                     "port, or \"*\" for any",
                                     hosts[i]));
    }
    return hosts;
  }

  void read_engine() {
    FieldReader identity(section("identity"), "/identity");
    if (auto strategy = identity.word("undeclared", parse_strategy, "always_unique, strict, caller_provided")) {
      if (*strategy == Strategy::contextual) {
        throw InvalidField("/identity/undeclared",
                           "an undeclared type has no identity_fields; declare it in [types.NAME] instead");
      }
      config_.undeclared = *strategy;
    }
    config_.idempotency_ttl = identity.duration("ttl");
    identity.done();

    FieldReader retention(section("retention"), "/retention");
    config_.task_retention = retention.duration("tasks").value_or(config_.task_retention);
    config_.workflow_retention = retention.duration("workflows").value_or(config_.workflow_retention);
    retention.done();

    FieldReader cache(section("cache"), "/cache");
    config_.cache_redis = cache.string("redis").value_or("");
    cache.done();

    FieldReader cleanup(section("cleanup"), "/cleanup");
    config_.cleanup_interval = cleanup.duration("interval").value_or(config_.cleanup_interval);
    if (config_.cleanup_interval < Duration(1)) {
      throw InvalidField("/cleanup/interval", "must be longer than zero; write e.g. \"1h\"");
    }
    cleanup.done();

    FieldReader requests(section("requests"), "/requests");
    if (auto days = requests.integer("ttl_days", 1, 3650)) config_.request_ttl = std::chrono::days(*days);
    if (auto seconds = requests.integer("cleanup_interval_seconds", 1, 604'800)) {
      config_.request_cleanup_interval = std::chrono::seconds(*seconds);
    }
    requests.done();
  }

  using ReadTable = std::function<void(const std::string& name, const Json& table, const std::string& at)>;

  // [section.NAME], for each name.
  void read_named(std::string_view section, const Words& keys, const ReadTable& read_table) const {
    const Json* tables = document_.root.find(section);
    if (!tables) return;
    for (const auto& [name, table] : tables->members) {
      const std::string at = fmt::format("/{}/{}", section, pointer_step(name));
      if (!table.is(Json::Kind::object)) {
        throw document_.error(at, fmt::format("must be a table; write [{}.NAME] and the keys below it", section));
      }
      if (auto wrong = check_name(name)) throw document_.error(at, "the name " + *wrong);
      check_keys(table, at, keys);
      read_table(name, table, at);
    }
  }

  // The keys of the table at `name`, or of each one in the array there.
  void check_member(const Json& table, const std::string& at, std::string_view name, const Words& known) const {
    const Json* member = table.find(name);
    if (!member) return;
    const std::string place = fmt::format("{}/{}", at, name);
    if (member->is(Json::Kind::object)) check_keys(*member, place, known);
    for (std::size_t i = 0; i < member->items.size(); ++i) {
      if (member->items[i].is(Json::Kind::object)) check_keys(member->items[i], fmt::format("{}/{}", place, i), known);
    }
  }

  ActivitySettings read_activity(const std::string& name, const Json& table, const std::string& at) const {
    try {
      check_activity_id(name);
    } catch (const InvalidField& error) {
      throw InvalidField(at, fmt::format("the name {}", error.what()));
    }
    check_member(table, at, "workflow", kStartedKeys);
    check_member(table, at, "tasks", kStartedKeys);
    check_member(table, at, "trigger", kTriggerKeys);
    if (const Json* trigger = table.find("trigger")) {
      check_member(*trigger, at + "/trigger", "cron", kCronKeys);
      check_member(*trigger, at + "/trigger", "event", kEventKeys);
      if (const Json* event = trigger->find("event")) check_member(*event, at + "/trigger/event", "where", kWhereKeys);
    }
    return ActivitySettings::parse(table, at);
  }

  TokenSettings read_new_token(const std::string& name, const Json& table, const std::string& at) const {
    TokenSettings settings = read_token(name, table, at, environment_);
    for (const auto& other : config_.tokens) {
      if (other.token == settings.token)
        throw InvalidField(at + "/" + token_key(table), fmt::format("is the same token as [tokens.{}]", other.name));
    }
    return settings;
  }

  const ConfigDocument& document_;
  const Environment& environment_;
  Config config_;
};

// The variables that [tokens.NAME] token_env names, so that one named HAPAX_… is not an unknown setting.
std::set<std::string> token_variables(const Json& root) {
  std::set<std::string> names;
  const Json* tokens = root.find("tokens");
  if (!tokens) return names;
  for (const auto& [name, table] : tokens->members) {
    if (const Json* variable = table.find("token_env")) names.insert(variable->text);
  }
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw ConfigError(fmt::format("{}: cannot read the configuration: {}", path, std::strerror(errno)));
  return text;
}

}  // namespace

Config parse_config(std::string_view toml, const std::string& file, const Environment& environment,
                    const std::vector<FlagValue>& flags) {
  // Each layer is checked before the next overrides it: a bad value is an error even if another one wins.
  ConfigDocument document = parse_toml(toml, file);
  ConfigReader(document, environment).read();
  overlay_environment(document, environment, token_variables(document.root));
  ConfigReader(document, environment).read();
  for (const auto& flag : flags) {
    document.set(flag.section, flag.key, value_from_text(flag.section, flag.key, flag.value), flag.flag);
  }
  Config config = ConfigReader(document, environment).read();
  ConfigReader::check_exposure(config, document);
  return config;
}

Config load_config(const std::optional<std::string>& path, const Environment& environment,
                   const std::vector<FlagValue>& flags) {
  const auto variable = environment.find("HAPAX_CONFIG");
  const bool named = path || variable != environment.end();
  const std::string file = path ? *path : named ? variable->second : "hapax.toml";
  if (!named && access(file.c_str(), F_OK) != 0) return parse_config("", file, environment, flags);
  return parse_config(read_file(file), file, environment, flags);
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 8> kUnits{{{"", 1},
                                                                                     {"B", 1},
                                                                                     {"KB", 1000},
                                                                                     {"MB", 1000'000},
                                                                                     {"GB", 1000'000'000},
                                                                                     {"KiB", 1 << 10},
                                                                                     {"MiB", 1 << 20},
                                                                                     {"GiB", 1 << 30}}};
  std::uint64_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc() || count > (1ull << 32)) return {};
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return count * bytes;
  }
  return {};
}

}  // namespace hapax
