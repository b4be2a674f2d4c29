#include "open/open_engine.h"

#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <filesystem>
#include <string_view>

#include "client/remote_engine.h"
#include "core/secret.h"
#include "core/time.h"
#include "store/cache/cached_store.h"
#include "store/memory/memory_store.h"
#include "store/postgres/postgres_store.h"
#include "store/s3/client/s3_objects.h"
#include "store/s3/s3_store.h"
#include "store/sqlite/living.h"
#include "store/sqlite/sqlite_store.h"

namespace hapax {

namespace {

constexpr std::string_view kKnown =
    "this build knows sqlite:FILE, postgres://HOST/DATABASE, s3://BUCKET/PREFIX, memory: and http://HOST:PORT";

const SystemClock kClock;

[[noreturn]] void refuse(const std::string& url, const std::string& why) {
  throw BadUrl("\"" + without_secrets(url) + "\": " + why);
}

bool is_postgres(std::string_view url) { return url.starts_with("postgres://") || url.starts_with("postgresql://"); }

bool is_server(std::string_view url) { return url.starts_with("http://") || url.starts_with("https://"); }

std::string sqlite_path(const std::string& url) {
  const std::string path = url.substr(url.find(':') + 1);
  if (path.empty()) refuse(url, "the file is missing; write e.g. sqlite:hapax.db");
  if (path.starts_with(":memory:")) refuse(url, "to keep everything in memory, write memory:");
  if (path.starts_with("//")) {
    refuse(url, "write the path right after the colon: sqlite:hapax.db, sqlite:/var/lib/hapax.db");
  }
  return path;
}

// The app's workers would never find a task in another file.
void check_same_file(sqlite3* connection, const std::string& path) {
  const char* other = sqlite3_db_filename(connection, "main");
  std::error_code error;
  if (other && std::filesystem::equivalent(other, path, error)) return;
  throw Failure(Failure::Code::misuse,
                "the connection is to '" + std::string(other ? other : "") + "', but this app has " + path + " open");
}

std::unique_ptr<Store> with_cache(std::unique_ptr<Store> store, const std::string& redis) {
  CacheOptions options;
  try {
    options.redis = parse_redis_url(redis);
  } catch (const BadRedisUrl& error) {
    throw BadUrl("[cache] redis: " + std::string(error.what()));
  }
  options.log = [](const std::string& message) { spdlog::info("{}", message); };
  return open_cached_store(std::move(store), std::move(options));
}

std::unique_ptr<Store> open_bucket(const std::string& url, const OpenStoreOptions& options) {
  S3ObjectsOptions client;
  if (options.request_counts) client.wire.counts = options.request_counts;
  client.patience = options.timeout;
  S3StoreOptions store;
  store.create = options.create;
  store.migrate = options.migrate;
  store.timeout = options.timeout;
  return open_s3_store(std::make_shared<S3Objects>(parse_s3_url(url), client), store);
}

std::unique_ptr<Store> open_bare_store(const std::string& url, const OpenStoreOptions& options) {
  const std::string scheme = url.substr(0, url.find(':'));
  if (scheme.size() == url.size()) refuse(url, "is not a URL; a file is written sqlite:" + without_secrets(url));
  if (scheme == "memory") {
    if (url != "memory:") refuse(url, "memory: takes nothing after the colon");
    return open_memory_store(options.clock ? *options.clock : kClock);
  }
  if (scheme == "sqlite") {
    SqliteOptions sqlite;
    sqlite.path = sqlite_path(url);
    sqlite.create = options.create;
    sqlite.migrate = options.migrate;
    sqlite.timeout = options.timeout;
    return open_sqlite_store(sqlite, options.clock ? *options.clock : kClock);
  }
  if (is_server(url)) refuse(url, "is a server's address, and a store is needed here");
  if (is_postgres(url)) {
    PostgresOptions postgres;
    postgres.url = url;
    postgres.create = options.create;
    postgres.migrate = options.migrate;
    postgres.timeout = options.timeout;
    return open_postgres_store(postgres);
  }
  if (scheme == "postgres" || scheme == "postgresql") refuse(url, "write e.g. postgres://user@localhost/database");
  if (url.starts_with("s3://")) return open_bucket(url, options);
  if (scheme == "s3") refuse(url, "write e.g. s3://bucket/prefix?region=eu-central-1");
  refuse(url, "there is no store of the kind \"" + scheme + "\"; " + std::string(kKnown));
}

}  // namespace

std::unique_ptr<Store> open_store(const std::string& url, OpenStoreOptions options) {
  std::unique_ptr<Store> store = open_bare_store(url, options);
  return options.cache_redis.empty() ? std::move(store) : with_cache(std::move(store), options.cache_redis);
}

Opened open_engine(const std::string& url, OpenEngineOptions options) {
  if (is_server(url)) {
    return {connect_engine({.url = url, .token = options.token, .name_space = options.name_space}), {}, {}, {}, true};
  }
  const std::shared_ptr<LocalEngine> engine = start_engine(open_store(url, options.store), std::move(options.engine));
  Opened opened{engine, {}, {}};
  if (url.starts_with("sqlite:")) {
    opened.submit_in = [engine = engine.get(), path = sqlite_path(url)](
                           sqlite3* connection, const std::string& name_space, SubmitRequest request) {
      check_same_file(connection, path);
      return engine->submit_through(name_space, std::move(request),
                                    [&](const Submission& submission, const QueuePolicies& policies) {
                                      return submit_in_transaction(connection, submission, policies, kClock.now());
                                    });
    };
    opened.hold_worker = [path = sqlite_path(url)](const std::string& worker) {
      return sqlite::hold_worker(path, worker);
    };
  } else if (is_postgres(url)) {
    opened.submit_in_postgres = [engine = engine.get(), url](pg_conn* connection, const std::string& name_space,
                                                             SubmitRequest request) {
      return engine->submit_through(name_space, std::move(request),
                                    [&](const Submission& submission, const QueuePolicies& policies) {
                                      return submit_in_transaction(connection, url, submission, policies);
                                    });
    };
  }
  return opened;
}

}  // namespace hapax
