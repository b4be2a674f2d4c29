#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <system_error>
#include <thread>

#include "cli/command.h"
#include "cli/config_flags.h"
#include "cli/engine_options.h"
#include "cli/signals.h"
#include "engine/local_engine.h"
#include "http/server.h"

namespace hapax {

namespace {

struct ServeFlags : ConfigFlags {
  bool hints = false;
};

// The engine commits on threads of its own, so half of the processors are left to it.
std::size_t io_threads(std::int32_t configured) {
  if (configured > 0) return static_cast<std::size_t>(configured);
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 8);
}

ServerOptions server_options(const Config& config) {
  ServerOptions options;
  options.host = config.listen.host;
  options.port = config.listen.port;
  options.max_body_bytes = static_cast<std::size_t>(config.max_body_bytes);
  options.io_threads = io_threads(config.threads);
  for (const auto& token : config.tokens) options.tokens.push_back({token.token, token.name_space});
  return options;
}

void start_log(LogLevel level) {
  auto log = spdlog::get("hapax");
  if (!log) log = spdlog::stderr_color_mt("hapax");
  log->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  log->set_level(level == LogLevel::off ? spdlog::level::off
                                        : static_cast<spdlog::level::level_enum>(static_cast<int>(level)));
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(log);
}

// Ten thousand waiting clients are ten thousand open files.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    spdlog::warn("cannot raise the number of open files to {}", limit.rlim_max);
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

int serve(const Program& program, const ServeFlags& flags) {
  const Config config = flags.load(program.environment);
  EndSignals signals;
  start_log(config.log_level);
  raise_file_limit();

  std::shared_ptr<Store> store =
      program.open_store(config.store, {.cache_redis = config.cache_redis, .timeout = config.store_timeout});
  const auto engine = start_engine(store, engine_options(config));
  const auto server = listen(*engine, server_options(config));
  program.out << "listening on http://" << server->address() << "\n";
  if (flags.hints || program.terminal) print_hints(program.out, server->address(), !config.tokens.empty());
  program.out.flush();
  spdlog::info("serving {} on {}", config.store, server->address());

  const int signal = signals.wait();
  spdlog::info("stopping on signal {}; a second one ends at once", signal);
  server->stop();
  engine->stop();
  spdlog::info("stopped");
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("serve", "Serve the HTTP API over a store");
  auto flags = std::make_shared<ServeFlags>();
  flags->add(*command, "--listen", "listen", "ADDRESS:PORT, port 0 for any free one (default: 127.0.0.1:7373)");
  flags->add(*command, "--store", "store", "sqlite:FILE, postgres://…, s3://… or memory: (default: sqlite:hapax.db)");
  flags->add(*command, "--cache-redis", "redis", "redis://HOST:PORT that caches completed identities (default: none)",
             "cache");
  flags->add(*command, "--log-level", "log_level", "trace, debug, info, warn, error or off (default: info)");
  flags->add_config(*command);
  command->add_flag("--hints", flags->hints, "Print what to try, also where standard output is no terminal");
  command->callback([&program, &action, flags] { action = [&program, flags] { return serve(program, *flags); }; });
}

}  // namespace hapax
