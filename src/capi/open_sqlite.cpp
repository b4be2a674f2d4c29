#include "capi/open_sqlite.h"

#include <pthread.h>

#include <atomic>

#include "core/failure.h"

namespace hapax::capi {

namespace {

std::atomic<int> in_use = 0;
std::atomic<bool> is_inherited = false;

const int registered = pthread_atfork(nullptr, nullptr, [] {
  if (in_use.exchange(0) > 0) is_inherited = true;
});

bool is_sqlite(const std::string& url) { return url.starts_with("sqlite:"); }

}  // namespace

void refuse_inherited_sqlite(const std::string& url) {
  if (!is_sqlite(url) || !is_inherited) return;
  throw Failure(Failure::Code::misuse,
                "this process was forked while its parent had a sqlite: URL open, and SQLite cannot be used here any "
                "more: fork before it is opened, or start a new program in the child");
}

OpenSqlite::OpenSqlite(const std::string& url) : counts_(is_sqlite(url)) {
  static_cast<void>(registered);
  if (counts_) ++in_use;
}

OpenSqlite::~OpenSqlite() {
  if (counts_) --in_use;
}

}  // namespace hapax::capi
