#include "open_store.h"

#include <string_view>

#include "config/document.h"
#include "core/time.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"

namespace hapax {

namespace {

constexpr std::string_view kStores = "the stores of this build are sqlite:FILE and memory:";

}  // namespace

std::unique_ptr<Store> open_store(const std::string& url) {
  static const SystemClock clock;
  const auto wrong = [&](std::string_view why) { return ConfigError("store \"" + url + "\": " + std::string(why)); };
  const std::string scheme = url.substr(0, url.find(':'));
  if (scheme.size() == url.size()) throw wrong("is no URL; a file is written sqlite:" + url);
  const std::string rest = url.substr(scheme.size() + 1);

  if (scheme == "memory") {
    if (!rest.empty()) throw wrong("memory: takes nothing after the colon");
    return open_memory_store(clock);
  }
  if (scheme == "sqlite") {
    if (rest.empty()) throw wrong("the file is missing; write e.g. sqlite:hapax.db");
    if (rest.starts_with(":memory:")) throw wrong("to keep everything in memory, write memory:");
    if (rest.starts_with("//")) throw wrong("write the path right after the colon: sqlite:hapax.db, sqlite:/var/lib/hapax.db");
    return open_sqlite_store({.path = rest}, clock);
  }
  if (scheme == "postgres" || scheme == "postgresql") throw wrong("PostgreSQL is not in this build; " + std::string(kStores));
  if (scheme == "s3") throw wrong("S3 is not in this build; " + std::string(kStores));
  throw wrong("no store is called \"" + scheme + "\"; " + std::string(kStores));
}

}  // namespace hapax
