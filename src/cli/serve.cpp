#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/config_flags.h"
#include "cli/end_watch.h"
#include "cli/server_log.h"
#include "cli/signals.h"
#include "core/secret.h"
#include "engine/local_engine.h"
#include "http/server.h"
#include "open/engine_options.h"

namespace hapax {

namespace {

constexpr Duration kEngineGrace{2000};
constexpr Duration kSubmitBacklog{500};  // a second after an overload is over, nothing is left of it
constexpr std::size_t kOwnFiles = 256;   // that are not connections: the store's, the log's

struct ServeFlags : ConfigFlags {
  bool hints = false;
};

// The engine commits on its own threads, so half of the processors are left to it.
std::size_t io_threads(std::int32_t configured) {
  if (configured > 0) return static_cast<std::size_t>(configured);
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 8);
}

std::vector<AccessToken> access_tokens(const Config& config) {
  std::vector<AccessToken> tokens;
  for (const auto& token : config.tokens) tokens.push_back({token.token, token.name_space});
  return tokens;
}

// The rest of the grace is for the engine, and for answering requests that got no answer.
Duration drain_time(const Config& config) {
  return config.shutdown_grace - std::min<Duration>(config.shutdown_grace / 4, kEngineGrace);
}

ServerOptions server_options(const Config& config, std::size_t most_connections) {
  ServerOptions options;
  options.host = config.listen.host;
  options.port = config.listen.port;
  options.max_body_bytes = static_cast<std::size_t>(config.max_body_bytes);
  options.max_connections = std::min(static_cast<std::size_t>(config.max_connections), most_connections);
  options.max_requests = static_cast<std::size_t>(config.max_requests);
  options.max_request_bytes = static_cast<std::size_t>(config.max_request_bytes);
  options.max_unsent_bytes = static_cast<std::size_t>(config.max_unsent_bytes);
  options.store_timeout = config.store_timeout;
  options.drain_timeout = drain_time(config);
  options.io_threads = io_threads(config.threads);
  options.tokens = access_tokens(config);
  options.hosts = config.hosts;
  return options;
}

// Ten thousand waiting clients are ten thousand open files. Returns how many connections are possible.
std::size_t raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      spdlog::warn("cannot raise the number of open files to {}", limit.rlim_max);
      limit.rlim_cur = before;
    }
  }
  const auto files = static_cast<std::size_t>(limit.rlim_cur);
  return files - std::min(files / 2, kOwnFiles);
}

std::unique_ptr<Server> listen(Engine& engine, const ServerOptions& options) {
  try {
    return start_server(engine, options);
  } catch (const std::system_error& e) {
    throw std::runtime_error(
        fmt::format("cannot listen on {}:{}: {}; choose another address with --listen or [server] listen", options.host,
                    options.port, e.code().message()));
  }
}

void print_hints(std::ostream& out, const std::string& address, bool tokens) {
  const std::string auth = tokens ? " -H 'Authorization: Bearer TOKEN'" : "";
  out << fmt::format(
      R"(submit (try it twice): curl{0} http://{1}/v1/tasks --json '{{"type":"greet","input":{{"name":"Ada"}},"idempotency_key":"greet-ada"}}'
claim it:              curl{0} http://{1}/v1/claims --json '{{"worker":"me","wait":"10s"}}'
finish it:             curl{0} http://{1}/v1/claims/finish --json '{{"outcomes":[{{"lease":"LEASE OF THE CLAIM","result":"hello Ada"}}]}}'
look around:           curl{0} http://{1}/v1/tasks
)",
      auth, address);
}

// The sections and keys in which the two differ, except those that a running server can reload.
std::vector<std::string> changed_for_restart(const Config& a, const Config& b) {
  const std::pair<const char*, bool> all[]{
      {"[server] listen", a.listen != b.listen},
      {"[server] store", a.store != b.store},
      {"[server] store_timeout", a.store_timeout != b.store_timeout},
      {"[server] max_body", a.max_body_bytes != b.max_body_bytes},
      {"[server] max_connections", a.max_connections != b.max_connections},
      {"[server] max_requests", a.max_requests != b.max_requests},
      {"[server] max_request_bytes", a.max_request_bytes != b.max_request_bytes},
      {"[server] max_unsent_bytes", a.max_unsent_bytes != b.max_unsent_bytes},
      {"[server] shutdown_grace", a.shutdown_grace != b.shutdown_grace},
      {"[server] threads", a.threads != b.threads},
      {"[identity]", a.undeclared != b.undeclared || a.idempotency_ttl != b.idempotency_ttl},
      {"[retention]", a.task_retention != b.task_retention || a.workflow_retention != b.workflow_retention},
      {"[queues]", a.queues != b.queues},
      {"[types]", a.types != b.types},
      {"[activities]", a.activities != b.activities},
      {"[cache]", a.cache_redis != b.cache_redis},
      {"[cleanup]", a.cleanup_interval != b.cleanup_interval},
      {"[requests]", a.request_ttl != b.request_ttl || a.request_cleanup_interval != b.request_cleanup_interval}};
  std::vector<std::string> names;
  for (const auto& [name, differs] : all) {
    if (differs) names.emplace_back(name);
  }
  return names;
}

// Reloads what can change while the server runs: tokens, hosts and the log level. The rest is compared with `started`;
// `guarded`: tokens are required now. A file that is empty or missing, even for a moment, must not open the server to
// everyone.
void reload(const Program& program, const ServeFlags& flags, const Config& started, Server& server, bool& guarded) {
  try {
    const Config config = flags.load(program.environment);
    if (guarded && config.tokens.empty()) throw ConfigError("it has no tokens any more; to serve without, restart");
    guarded = !config.tokens.empty();
    server.change_access(access_tokens(config), config.hosts);
    set_log_level(config.log_level);
    spdlog::info("reloaded the configuration: {} tokens, {} hosts", config.tokens.size(), config.hosts.size());
    if (const auto names = changed_for_restart(started, config); !names.empty()) {
      spdlog::warn("changed, but in force only after a restart: {}", fmt::join(names, ", "));
    }
  } catch (const std::exception& error) {
    spdlog::error("the configuration was not reloaded, the old one stays in force: {}", error.what());
  }
}

int serve(const Program& program, const ServeFlags& flags) {
  const Config config = flags.load(program.environment);
  EndSignals signals(true);
  start_log(config.log_level);
  EndWatch watch;  // first, so that it ends last
  const std::size_t most_connections = raise_file_limit();

  std::shared_ptr<Store> store =
      program.open_store(config.store, {.cache_redis = config.cache_redis, .timeout = config.store_timeout});
  EngineOptions options = engine_options(config);
  options.submit_backlog = kSubmitBacklog;
  const auto engine = start_engine(store, std::move(options));
  const auto server = listen(*engine, server_options(config, most_connections));
  program.out << "listening on http://" << server->address() << "\n";
  if (flags.hints || program.terminal) print_hints(program.out, server->address(), !config.tokens.empty());
  program.out.flush();
  spdlog::info("serving {} on {}", without_secrets(config.store), server->address());

  int signal = signals.wait();
  bool guarded = !config.tokens.empty();
  for (; signal == SIGHUP; signal = signals.wait()) reload(program, flags, config, *server, guarded);
  const auto until = std::chrono::steady_clock::now() + drain_time(config);
  watch.begin(config.shutdown_grace, drain_time(config), [watched = std::weak_ptr(store)] {
    if (const auto open = watched.lock()) open->interrupt();
  });
  spdlog::info("stopping on signal {}; a second one ends at once", signal);
  server->stop();
  const auto left = std::chrono::duration_cast<Duration>(until - std::chrono::steady_clock::now());
  engine->stop(std::max(left, Duration::zero()));
  spdlog::info("stopped");
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("serve", "Serve the HTTP API over a store");
  auto flags = std::make_shared<ServeFlags>();
  flags->add(*command, "--listen", "listen", "ADDRESS:PORT, port 0 for any free one (default: 127.0.0.1:7373)");
  flags->add(*command, "--store", "store", "sqlite:FILE, postgres://…, s3://… or memory: (default: sqlite:hapax.db)");
  flags->add_file(*command, "--store-file", "store", "A file with the URL of the store, for one with a password");
  flags->add(*command, "--cache-redis", "redis", "redis://HOST:PORT that caches completed identities (default: none)",
             "cache");
  flags->add(*command, "--hosts", "hosts", "NAME,NAME: host names that the server answers to, beside localhost");
  flags->add(*command, "--log-level", "log_level", "trace, debug, info, warn, error or off (default: info)");
  flags->add_config(*command);
  command->add_flag("--hints", flags->hints, "Print what to try, also where standard output is no terminal");
  command->callback([&program, &action, flags] { action = [&program, flags] { return serve(program, *flags); }; });
}

}  // namespace hapax
