#include "open/open_engine.h"

#include <sqlite3.h>

#include <filesystem>
#include <string_view>

#include "client/remote_engine.h"
#include "core/time.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"

namespace hapax {

namespace {

constexpr std::string_view kKnown = "this build knows sqlite:FILE, memory: and http://HOST:PORT";

const SystemClock kClock;

[[noreturn]] void refuse(const std::string& url, const std::string& why) { throw BadUrl("\"" + url + "\": " + why); }

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

// A task in another file would never be found by this app's workers.
void check_same_file(sqlite3* connection, const std::string& path) {
  const char* other = sqlite3_db_filename(connection, "main");
  std::error_code error;
  if (other && std::filesystem::equivalent(other, path, error)) return;
  throw Failure(Failure::Code::misuse,
                "the connection is to '" + std::string(other ? other : "") + "', but this app has " + path + " open");
}

}  // namespace

std::unique_ptr<Store> open_store(const std::string& url) {
  const std::string scheme = url.substr(0, url.find(':'));
  if (scheme.size() == url.size()) refuse(url, "is no URL; a file is written sqlite:" + url);
  if (scheme == "memory") {
    if (url != "memory:") refuse(url, "memory: takes nothing after the colon");
    return open_memory_store(kClock);
  }
  if (scheme == "sqlite") {
    SqliteOptions options;
    options.path = sqlite_path(url);
    return open_sqlite_store(options, kClock);
  }
  if (is_server(url)) refuse(url, "is a server's address, and a store is needed here");
  if (scheme == "postgres" || scheme == "postgresql") refuse(url, "PostgreSQL is not in this build; " + std::string(kKnown));
  if (scheme == "s3") refuse(url, "S3 is not in this build; " + std::string(kKnown));
  refuse(url, "nothing is called \"" + scheme + "\"; " + std::string(kKnown));
}

Opened open_engine(const std::string& url, OpenEngineOptions options) {
  if (is_server(url)) {
    return {connect_engine({.url = url, .token = options.token, .name_space = options.name_space}), {}};
  }
  const std::shared_ptr<LocalEngine> engine = start_engine(open_store(url), std::move(options.engine));
  Opened opened{engine, {}};
  if (url.starts_with("sqlite:")) {
    opened.submit_in = [engine = engine.get(), path = sqlite_path(url)](
                           sqlite3* connection, const std::string& name_space, SubmitRequest request) {
      check_same_file(connection, path);
      return engine->submit_through(name_space, std::move(request),
                                    [&](const Submission& submission, const QueuePolicies& policies) {
                                      return submit_in_transaction(connection, submission, policies, kClock.now());
                                    });
    };
  }
  return opened;
}

}  // namespace hapax
