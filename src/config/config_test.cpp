#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace hapax {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

Config parse(std::string_view toml, const Environment& environment = {}, const std::vector<FlagValue>& flags = {}) {
  return parse_config(toml, "hapax.toml", environment, flags);
}

std::string refusal(std::string_view toml, const Environment& environment = {},
                    const std::vector<FlagValue>& flags = {}) {
  try {
    parse(toml, environment, flags);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Config, DefaultsAreSafe) {
  const Config config = parse("");
  EXPECT_EQ(config.listen, (ListenAddress{"127.0.0.1", 7373}));
  EXPECT_EQ(config.store, "sqlite:hapax.db");
  EXPECT_EQ(config.undeclared, Strategy::always_unique);
  EXPECT_EQ(config.idempotency_ttl, std::nullopt);
  EXPECT_EQ(config.task_retention, std::chrono::days(7));
  EXPECT_EQ(config.workflow_retention, std::chrono::days(30));
  EXPECT_EQ(config.cache_redis, "");
  EXPECT_EQ(config.cleanup_interval, 1h);
  EXPECT_EQ(config.request_ttl, std::chrono::days(7));
  EXPECT_EQ(config.request_cleanup_interval, 300s);
  EXPECT_FALSE(config.insecure);
}

TEST(Config, ABadValueIsAnErrorEvenWhereAnotherOneWins) {
  const std::vector<FlagValue> flag{{"--listen", "server", "listen", "127.0.0.1:0"}};
  EXPECT_THAT(refusal("[server]\nlisten = \"nowhere\"\n", {}, flag), StartsWith("hapax.toml:2: [server] listen:"));
  EXPECT_THAT(refusal("[server]\nlisten = \"nowhere\"\n", {{"HAPAX_LISTEN", "127.0.0.1:0"}}),
              StartsWith("hapax.toml:2: [server] listen:"));
  EXPECT_THAT(refusal("", {{"HAPAX_LISTEN", "nowhere"}}, flag), HasSubstr("HAPAX_LISTEN"));
  EXPECT_EQ(refusal("[server]\nlisten = \"0.0.0.0:80\"\n", {}, flag), "accepted")
      << "what is not in force exposes nothing";
}

TEST(Config, ReadsEveryKey) {
  const Config config = parse(R"(
[server]
listen = "0.0.0.0:80"
store = "memory:"
store_timeout = "3s"
max_body = "2MiB"
max_connections = 50
max_requests = 20
max_request_bytes = "16MiB"
max_unsent_bytes = "32MiB"
shutdown_grace = "5s"
hosts = ["hapax.example.com", "hapax"]
threads = 3
log_level = "warn"
insecure = false
[identity]
undeclared = "strict"
ttl = "24h"
[retention]
tasks = "1d"
workflows = "2d"
[queues.payments]
retention = "30d"
rate_limit = "100/sec"
burst = 200
max_running = 10
concurrency_limit = 2
cancel_grace = "5s"
idempotency_ttl = "48h"
paused = true
[types.charge_customer]
queue = "payments"
identity = "contextual"
identity_fields = ["/order_id"]
scope = "queue"
reuse = "reject"
on_duplicate = "error"
idempotency_ttl = "1h"
priority = 5
max_attempts = 7
retry = { initial = "2s", factor = 1.5, max = "1m" }
timeout = "30s"
deadline = "1h"
[cache]
redis = "redis://cache:6379"

[cleanup]
interval = "10m"
[requests]
ttl_days = 3
cleanup_interval_seconds = 60
[tokens.shop]
token = "s3cret"
namespace = "shop"
)");
  EXPECT_EQ(config.listen, (ListenAddress{"0.0.0.0", 80}));
  EXPECT_EQ(config.store, "memory:");
  EXPECT_EQ(config.store_timeout, Duration(3000));
  EXPECT_EQ(config.max_body_bytes, 2u << 20);
  EXPECT_EQ(config.max_connections, 50);
  EXPECT_EQ(config.max_requests, 20);
  EXPECT_EQ(config.max_request_bytes, 16u << 20);
  EXPECT_EQ(config.max_unsent_bytes, 32u << 20);
  EXPECT_EQ(config.shutdown_grace, 5s);
  EXPECT_EQ(config.hosts, (std::vector<std::string>{"hapax.example.com", "hapax"}));
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.log_level, LogLevel::warn);
  EXPECT_EQ(config.undeclared, Strategy::strict);
  EXPECT_EQ(config.idempotency_ttl, 24h);
  EXPECT_EQ(config.task_retention, 24h);
  EXPECT_EQ(config.workflow_retention, 48h);
  EXPECT_EQ(config.cache_redis, "redis://cache:6379");
  EXPECT_EQ(config.cleanup_interval, 10min);
  EXPECT_EQ(config.request_ttl, 72h);
  EXPECT_EQ(config.request_cleanup_interval, 60s);
  const QueueSettings& queue = config.queues.at("payments");
  EXPECT_EQ(queue.retention, std::chrono::days(30));
  EXPECT_EQ(queue.rate_limit->count, 100);
  EXPECT_EQ(queue.paused, true);
  const TypeSettings& type = config.types.at("charge_customer");
  EXPECT_EQ(type.identity, Strategy::contextual);
  EXPECT_EQ(type.retry.factor, 1.5);
  EXPECT_EQ(type.deadline, 1h);
  ASSERT_EQ(config.tokens.size(), 1u);
  EXPECT_EQ(config.tokens[0].token, "s3cret");
  EXPECT_EQ(config.tokens[0].name_space, "shop");
}

TEST(Config, BadValueNamesFileLineKeyAndWhatToWrite) {
  EXPECT_THAT(refusal("[server]\n\n[queues.payments]\nrate_limit = \"1/sec\"\nretention = \"30x\"\n"),
              AllOf(StartsWith("hapax.toml:5: [queues.payments] retention: must be a duration such as"),
                    EndsWith(", not \"30x\"")));
  EXPECT_THAT(refusal("[queues.q]\nrate_limit = \"fast\"\n"),
              StartsWith("hapax.toml:2: [queues.q] rate_limit: must be a rate"));
  EXPECT_THAT(refusal("[queues.q]\nmax_running = -1\n"),
              StartsWith("hapax.toml:2: [queues.q] max_running: must be an integer"));
  EXPECT_THAT(refusal("[types.t]\nreuse = \"sometimes\"\n"),
              StartsWith("hapax.toml:2: [types.t] reuse: must be one of"));
  EXPECT_THAT(refusal("[types.t]\n\nretry = { initial = \"soon\" }\n"),
              StartsWith("hapax.toml:3: [types.t] retry.initial: must be"));
  EXPECT_THAT(refusal("[server]\nlisten = \"7373\"\n"),
              StartsWith("hapax.toml:2: [server] listen: \"7373\" is not an address"));
  EXPECT_THAT(refusal("[server]\nstore = \"hapax.db\"\n"), HasSubstr("a file is written \"sqlite:hapax.db\""));
  EXPECT_THAT(refusal("[server]\nmax_body = \"huge\"\n"),
              StartsWith("hapax.toml:2: [server] max_body: \"huge\" is not a size"));
  for (const char* timeout : {"99ms", "11m", "0"}) {
    EXPECT_THAT(refusal(std::string("[server]\nstore_timeout = \"") + timeout + "\"\n"),
                StartsWith("hapax.toml:2: [server] store_timeout: must be from 100ms to 10m"));
  }
  EXPECT_THAT(refusal("[server]\nmax_body = 0\n"), StartsWith("hapax.toml:2: [server] max_body: \"0\" is not a size"));
  EXPECT_THAT(refusal("[server]\nthreads = \"many\"\n"),
              StartsWith("hapax.toml:2: [server] threads: must be an integer"));
  EXPECT_THAT(refusal("[server]\nlog_level = \"loud\"\n"),
              StartsWith("hapax.toml:2: [server] log_level: must be one of trace"));
  EXPECT_THAT(refusal("[identity]\nundeclared = \"contextual\"\n"),
              StartsWith("hapax.toml:2: [identity] undeclared: an undeclared"));
  EXPECT_THAT(refusal("[cleanup]\ninterval = \"0\"\n"), StartsWith("hapax.toml:2: [cleanup] interval: must be longer"));
  EXPECT_THAT(refusal("[requests]\nttl_days = 0\n"),
              StartsWith("hapax.toml:2: [requests] ttl_days: must be an integer"));
  EXPECT_THAT(refusal("[retention]\ntasks = 1979-05-27\n"), StartsWith("hapax.toml:2: [retention] tasks: is a date"));
}

TEST(Config, UnknownKeySuggestsTheNearest) {
  EXPECT_EQ(refusal("[queues.payments]\nretenton = \"30d\"\n"),
            "hapax.toml:2: [queues.payments] retenton: unknown key; did you mean \"retention\"?");
  EXPECT_EQ(refusal("[types.t]\nmax_attempt = 3\n"),
            "hapax.toml:2: [types.t] max_attempt: unknown key; did you mean \"max_attempts\"?");
  EXPECT_EQ(refusal("[types.t.retry]\nfaktor = 3\n"),
            "hapax.toml:2: [types.t] retry.faktor: unknown key; did you mean \"factor\"?");
  EXPECT_EQ(refusal("[server]\nlisten_on = \"x\"\n"),
            "hapax.toml:2: [server] listen_on: unknown key; did you mean \"listen\"?");
  EXPECT_EQ(refusal("\n[sever]\n"), "hapax.toml:2: sever: no such section; did you mean \"server\"?");
  EXPECT_THAT(refusal("[cleanup]\ncolour = 1\n"),
              StartsWith("hapax.toml:2: [cleanup] colour: unknown key; known are interval"));
}

TEST(Config, ActivitiesHaveTheMembersThatTheApiTakes) {
  const Config config = parse(R"(
[activities.daily_report]
name = "Daily report"
workflow = { type = "report", input = { region = "eu", days = [1, 2] }, queue = "reports" }
dedupe_key_strategy = "catchup"
[activities.daily_report.trigger.cron]
expression = "0 9 * * 1-5"
timezone = "Europe/Berlin"
misfire_policy = "catchup"
catchup_limit = 3
[activities.ship]
enabled = false
tasks = [{ type = "pick" }, { type = "pack", queue = "hall" }]
[activities.ship.trigger.event]
type = "order.paid"
dedupe_by = "source_and_id"
where = [{ pointer = "/country", equals = "DE" }, { pointer = "/test", exists = false }]
)");
  ASSERT_EQ(config.activities.size(), 2U);
  const ActivitySettings& daily = config.activities.at("daily_report");
  EXPECT_EQ(std::get<ActivitySettings::Workflow>(daily.start).input, R"({"days":[1,2],"region":"eu"})");
  ASSERT_NE(daily.cron(), nullptr);
  EXPECT_EQ(daily.cron()->timezone, "Europe/Berlin");
  EXPECT_EQ(daily.cron()->catchup_limit, 3);
  EXPECT_EQ(daily.dedupe_key_strategy, MisfirePolicy::catchup);
  const ActivitySettings& ship = config.activities.at("ship");
  EXPECT_FALSE(ship.enabled);
  ASSERT_NE(ship.event(), nullptr);
  EXPECT_EQ(ship.event()->where.size(), 2U);
  EXPECT_EQ(ship.event()->dedupe_by, DedupeBy::source_and_id);
}

TEST(Config, WhatIsWrongInAnActivityNamesTheLine) {
  const std::string start = "[activities.a]\nworkflow = { type = \"t\" }\n";
  EXPECT_THAT(refusal(start), StartsWith("hapax.toml:1: [activities.a]"));
  EXPECT_THAT(refusal(start + "trigger = { cron = { expression = \"61 * * * *\" } }\n"),
              StartsWith("hapax.toml:3: [activities.a] trigger.cron.expression: "));
  EXPECT_THAT(refusal(start + "[activities.a.trigger.cron]\nexpression = \"@daily\"\ntimezone = \"Europe/Bonn\"\n"),
              StartsWith("hapax.toml:5: [activities.a] trigger.cron.timezone: "));
  EXPECT_THAT(refusal(start + "[activities.a.trigger.cron]\nexpresion = \"@daily\"\n"),
              EndsWith("trigger.cron.expresion: unknown key; did you mean \"expression\"?"));
  EXPECT_THAT(refusal(start + "[activities.a.trigger.event]\nwhere = [{ ponter = \"/x\" }]\n"),
              EndsWith("trigger.event.where.0.ponter: unknown key; did you mean \"pointer\"?"));
  EXPECT_THAT(refusal(start + "dedupe_key_strategy = \"compress\"\ntrigger = { cron = { expression = \"@daily\", "
                              "misfire_policy = \"skip\" } }\n"),
              StartsWith("hapax.toml:3: [activities.a] dedupe_key_strategy: "));
  EXPECT_THAT(refusal("[activities.\"a:b\"]\n"), AllOf(StartsWith("hapax.toml:1: "), HasSubstr("the name ")));
}

TEST(Config, KeyOutsideItsSectionSaysWhereItBelongs) {
  EXPECT_EQ(refusal("listen = \"127.0.0.1:1\"\n"),
            "hapax.toml:1: listen: belongs in a section; write [server] on a line above it");
  EXPECT_EQ(refusal("server = 3\n"), "hapax.toml:1: server: is a section; write [server]");
  EXPECT_THAT(refusal("[queues]\nretention = \"1d\"\n"),
              StartsWith("hapax.toml:2: [queues.retention]: must be a table"));
}

TEST(Config, SyntaxErrorNamesTheLine) {
  EXPECT_THAT(refusal("[server]\nlisten = \n"), StartsWith("hapax.toml:2: not valid TOML (column "));
  EXPECT_THAT(refusal("[server]\nlisten = \"a\"\nlisten = \"b\"\n"), StartsWith("hapax.toml:3: not valid TOML"));
}

TEST(Config, NameOfAQueueIsChecked) {
  EXPECT_THAT(refusal("[queues.\"\"]\n"),
              AllOf(StartsWith("hapax.toml:1: [queues.]: the name "), HasSubstr("1 to 128 bytes")));
}

TEST(Config, EnvironmentOverridesTheFile) {
  const Config config =
      parse("[server]\nstore = \"memory:\"\nthreads = 1\n", {{"HAPAX_STORE", "sqlite:other.db"},
                                                             {"HAPAX_SERVER_THREADS", "2"},
                                                             {"HAPAX_IDENTITY_UNDECLARED", "strict"},
                                                             {"HAPAX_CACHE_REDIS", "unix:/run/redis.sock"},
                                                             {"HAPAX_CLEANUP_INTERVAL", "5m"},
                                                             {"HAPAX_REQUESTS_TTL_DAYS", "1"},
                                                             {"HAPAX_REQUESTS_CLEANUP_INTERVAL_SECONDS", "30"},
                                                             {"HAPAX_INSECURE", "true"},
                                                             {"PATH", "/bin"}});
  EXPECT_EQ(config.store, "sqlite:other.db");
  EXPECT_EQ(config.threads, 2);
  EXPECT_EQ(config.undeclared, Strategy::strict);
  EXPECT_EQ(config.cache_redis, "unix:/run/redis.sock");
  EXPECT_EQ(config.cleanup_interval, 5min);
  EXPECT_EQ(config.request_ttl, 24h);
  EXPECT_EQ(config.request_cleanup_interval, 30s);
  EXPECT_TRUE(config.insecure);
}

TEST(Config, FlagsOverrideTheEnvironment) {
  const Config config = parse("", {{"HAPAX_LISTEN", "127.0.0.1:1"}}, {{"--listen", "server", "listen", "127.0.0.1:2"}});
  EXPECT_EQ(config.listen.port, 2);
}

TEST(Config, ErrorsNameTheVariableOrFlagAtFault) {
  EXPECT_THAT(refusal("", {{"HAPAX_LISTEN", "nowhere"}}),
              StartsWith("environment variable HAPAX_LISTEN: [server] listen: \"nowhere\""));
  EXPECT_EQ(refusal("", {{"HAPAX_THREADS", "many"}}),
            "environment variable HAPAX_THREADS: [server] threads: must be an integer from 0 to 256, not \"many\"");
  EXPECT_THAT(refusal("", {}, {{"--log-level", "server", "log_level", "loud"}}),
              StartsWith("--log-level: [server] log_level: must be one of"));
}

TEST(Config, UnknownVariableIsAnError) {
  EXPECT_EQ(refusal("", {{"HAPAX_LISTNE", "x"}}),
            "environment variable HAPAX_LISTNE: there is no such setting; did you mean \"HAPAX_LISTEN\"?");
  EXPECT_THAT(refusal("", {{"HAPAX_LISTEN", "127.0.0.1:1"}, {"HAPAX_SERVER_LISTEN", "127.0.0.1:2"}}),
              HasSubstr("sets the same"));
  EXPECT_EQ(refusal("", {{"HAPAX_TEST_SEED", "1"}, {"HAPAX_BENCH_ROWS", "1"}, {"HAPAX_CONFIG", "x"}}), "accepted");
}

TEST(Environment, WhatKubernetesSetsForServicesIsNoSetting) {
  for (const std::string service : {"HAPAX", "HAPAX_WEB", "HAPAX_SERVER_PORT"}) {
    const Environment links{{service + "_SERVICE_HOST", "10.0.171.239"},
                            {service + "_SERVICE_PORT", "7373"},
                            {service + "_SERVICE_PORT_HTTP", "7373"},
                            {service + "_PORT", "tcp://10.0.171.239:7373"},
                            {service + "_PORT_7373_TCP", "tcp://10.0.171.239:7373"},
                            {service + "_PORT_7373_TCP_PROTO", "tcp"},
                            {service + "_PORT_7373_TCP_PORT", "7373"},
                            {service + "_PORT_7373_TCP_ADDR", "10.0.171.239"},
                            {service + "_PORT_53_UDP_ADDR", "10.0.171.239"}};
    EXPECT_EQ(refusal("", links), "accepted") << service;
  }
}

TEST(Environment, WhatOnlyLooksLikeAServiceIsStillAMistake) {
  EXPECT_THAT(refusal("", {{"HAPAX_PORT", "7373"}}),
              HasSubstr("HAPAX_PORT: there is no such setting; the address and the "
                        "port are one: HAPAX_LISTEN=127.0.0.1:7373"));
  EXPECT_THAT(refusal("", {{"HAPAX_SERVICE_PORT", "http"}}), HasSubstr("HAPAX_SERVICE_PORT"));
  EXPECT_THAT(refusal("", {{"HAPAX_PORT_HTTP", "7373"}}), HasSubstr("HAPAX_PORT_HTTP"));
  EXPECT_THAT(refusal("", {{"HAPAX_PORT_7373_HTTP", "7373"}}), HasSubstr("HAPAX_PORT_7373_HTTP"));
  EXPECT_THAT(refusal("", {{"HAPAX_PORT_7373_TCP_NAME", "x"}}), HasSubstr("HAPAX_PORT_7373_TCP_NAME"));
}

TEST(Config, ListeningToTheWorldNeedsTokensOrAWord) {
  EXPECT_THAT(
      refusal("[server]\nlisten = \"0.0.0.0:7373\"\n"),
      AllOf(StartsWith("hapax.toml:2: [server] listen: "), HasSubstr("[tokens.NAME]"), HasSubstr("insecure = true")));
  EXPECT_THAT(refusal("", {}, {{"--listen", "server", "listen", "[::]:1"}}), StartsWith("--listen: "));
  EXPECT_EQ(refusal("[server]\nlisten = \"0.0.0.0:7373\"\ninsecure = true\n"), "accepted");
  EXPECT_EQ(refusal("[server]\nlisten = \"0.0.0.0:7373\"\n[tokens.a]\ntoken = \"t\"\n"), "accepted");
}

TEST(Config, HostsMayComeFromTheEnvironmentWithCommasBetweenThem) {
  const std::vector<std::string> both{"a.example", "b.example"};
  EXPECT_EQ(parse("", {{"HAPAX_SERVER_HOSTS", "a.example,b.example"}}).hosts, both);
  EXPECT_EQ(parse("", {{"HAPAX_HOSTS", "c.example"}}, {{"--hosts", "server", "hosts", "a.example,b.example"}}).hosts,
            both);
  for (const char* host : {"http://a.example", "a.example:80", ""}) {
    EXPECT_THAT(refusal(std::string("[server]\nhosts = [\"") + host + "\"]\n"),
                AllOf(StartsWith("hapax.toml:2: [server] hosts.0: "), HasSubstr("is not a host name")));
  }
  EXPECT_EQ(refusal("[server]\nhosts = [\"*\"]\n"), "accepted");
}

TEST(Config, TokenMayComeFromAFile) {
  const auto path = (std::filesystem::path(testing::TempDir()) / "hapax-config-test-token").string();
  std::filesystem::remove(path);
  const std::string toml = "[tokens.shop]\ntoken_file = \"" + path + "\"\n";
  EXPECT_EQ(refusal(toml), "hapax.toml:2: [tokens.shop] token_file: cannot read the token from \"" + path +
                               "\": No such file or directory");
  const auto write = [&](std::string_view text) { std::ofstream(path) << text; };
  write("s3cret\n");
  EXPECT_EQ(parse(toml).tokens.at(0).token, "s3cret");
  for (const std::string& bad :
       {std::string(), std::string("\n"), std::string("two words\n"), std::string(70'000, 'x')}) {
    write(bad);
    EXPECT_THAT(refusal(toml), AllOf(StartsWith("hapax.toml:2: [tokens.shop] token_file: "), Not(HasSubstr("two")),
                                     Not(HasSubstr("xxx"))));
  }
  EXPECT_THAT(refusal(toml + "token = \"a\"\n"),
              StartsWith("hapax.toml:2: [tokens.shop] token_file: token is given too"));
  std::filesystem::remove(path);
}

TEST(Config, TokenMayComeFromTheEnvironment) {
  const Config config = parse("[tokens.shop]\ntoken_env = \"HAPAX_SHOP_TOKEN\"\n", {{"HAPAX_SHOP_TOKEN", "abc"}});
  EXPECT_EQ(config.tokens.at(0).token, "abc");
  EXPECT_EQ(config.tokens.at(0).name_space, std::nullopt);
}

TEST(Config, BadTokensAreRefusedWithoutBeingShown) {
  EXPECT_EQ(refusal("[tokens.shop]\ntoken_env = \"SHOP\"\n"),
            "hapax.toml:2: [tokens.shop] token_env: the variable SHOP is not set");
  EXPECT_THAT(refusal("[tokens.shop]\nnamespace = \"shop\"\n"),
              StartsWith("hapax.toml:1: [tokens.shop]: write token ="));
  EXPECT_THAT(refusal("[tokens.shop]\ntoken = \"a\"\ntoken_env = \"A\"\n"),
              StartsWith("hapax.toml:3: [tokens.shop] token_env: token is given too"));
  EXPECT_THAT(refusal("[tokens.shop]\ntoken = \"two words\"\n"),
              AllOf(StartsWith("hapax.toml:2: "), Not(HasSubstr("two words"))));
  EXPECT_THAT(refusal("[tokens.shop]\ntoken = 123456\n"),
              AllOf(StartsWith("hapax.toml:2: "), Not(HasSubstr("123456"))));
  EXPECT_EQ(refusal("[tokens.a]\ntoken = \"x\"\n[tokens.b]\ntoken = \"x\"\n"),
            "hapax.toml:4: [tokens.b] token: is the same token as [tokens.a]");
}

TEST(Config, SizesHaveUnits) {
  EXPECT_EQ(parse_size("65536"), 65536u);
  EXPECT_EQ(parse_size("512KB"), 512000u);
  EXPECT_EQ(parse_size("8MiB"), 8u << 20);
  EXPECT_EQ(parse_size("-1"), std::nullopt);
  EXPECT_EQ(parse_size("8 MiB"), std::nullopt);
  EXPECT_EQ(parse_size("99999999999999999999GiB"), std::nullopt);
}

TEST(Config, NamedFileMustBeThere) {
  const auto path = std::filesystem::path(testing::TempDir()) / "hapax-config-that-is-not-there.toml";
  EXPECT_THROW(load_config(path.string(), {}, {}), ConfigError);
  EXPECT_THROW(load_config({}, {{"HAPAX_CONFIG", path.string()}}, {}), ConfigError);
}

TEST(Config, FileIsReadAndNamedInErrors) {
  const auto path = (std::filesystem::path(testing::TempDir()) / "hapax-config-test.toml").string();
  std::ofstream(path) << "[server]\nlisten = \"127.0.0.1:1\"\n";
  EXPECT_EQ(load_config(path, {}, {}).listen.port, 1);
  EXPECT_EQ(load_config({}, {{"HAPAX_CONFIG", path}}, {}).listen.port, 1);
  std::ofstream(path) << "[server]\nlisten = 1\n";
  EXPECT_THROW(
      {
        try {
          load_config(path, {}, {});
        } catch (const ConfigError& e) {
          EXPECT_THAT(e.what(), StartsWith(path + ":2: "));
          throw;
        }
      },
      ConfigError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hapax
