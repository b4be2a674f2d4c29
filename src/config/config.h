// The server's configuration: hapax.toml, overridden by HAPAX_* variables, overridden by flags. docs/configuration.md
// has every key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"
#include "config/listen.h"
#include "config/token_settings.h"
#include "core/activity.h"
#include "core/identity.h"
#include "core/settings.h"
#include "core/time.h"

namespace hapax {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };

struct Config {
  ListenAddress listen;
  std::string store = "sqlite:hapax.db";
  Duration store_timeout{10'000};  // of every call to the store
  std::uint64_t max_body_bytes = 8 << 20;
  std::int32_t max_connections = 10'000;
  std::int32_t max_requests = 4096;  // in hand at a time
  std::uint64_t max_request_bytes = 256 << 20;
  std::uint64_t max_unsent_bytes = 256 << 20;  // of answers
  Duration shutdown_grace{10'000};
  std::vector<std::string> hosts;  // the server's host names
  std::int32_t threads = 0;        // that serve connections; 0: as many as there are processors
  LogLevel log_level = LogLevel::info;
  bool insecure = false;  // listen to other machines without tokens
  std::vector<TokenSettings> tokens;

  std::string cache_redis;  // a Redis that caches completed identities; empty: none

  Strategy undeclared = Strategy::always_unique;
  std::optional<Duration> idempotency_ttl;
  Duration task_retention = std::chrono::days(7);
  Duration workflow_retention = std::chrono::days(30);
  Duration cleanup_interval = std::chrono::hours(1);
  Duration request_ttl = std::chrono::days(7);
  Duration request_cleanup_interval = std::chrono::seconds(300);
  std::map<std::string, QueueSettings> queues;
  std::map<std::string, TypeSettings> types;
  std::map<std::string, ActivitySettings> activities;
};

// A flag of the command line and the key it stands for: {"--listen", "server", "listen", "127.0.0.1:0"}.
struct FlagValue {
  std::string flag, section, key, value;
};

// Parses this text. Throws ConfigError.
Config parse_config(std::string_view toml, const std::string& file, const Environment& environment,
                    const std::vector<FlagValue>& flags);

// Reads `path`, else the file that HAPAX_CONFIG names, else hapax.toml in the working directory if it exists; then as
// parse_config. Throws ConfigError, also for a named file that cannot be read.
Config load_config(const std::optional<std::string>& path, const Environment& environment,
                   const std::vector<FlagValue>& flags);

// The variables of this process.
Environment process_environment();

// "1MiB", "512KB", "100" in bytes. Nothing for anything else.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace hapax
