// Linked into an example for a test: kills the process, as kill -9 does, right before or right after its n-th commit to
// a SQLite file. HAPAX_KILL is "before:N" or "after:N".
#include <sqlite3.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> commits_begun{0}, commits_made{0};
long kill_before = 0, kill_after = 0;
thread_local bool committing = false;

int on_commit(void*) {
  if (++commits_begun == kill_before) std::raise(SIGKILL);
  committing = true;
  return 0;
}

// A statement has ended. If it committed, the commit is in the file and the program does not know it yet.
int on_statement_end(unsigned, void* connection, void*, void*) {
  if (!committing || !sqlite3_get_autocommit(static_cast<sqlite3*>(connection))) return 0;
  committing = false;
  if (++commits_made == kill_after) std::raise(SIGKILL);
  return 0;
}

int install(sqlite3* connection, const char**, const sqlite3_api_routines*) {
  sqlite3_commit_hook(connection, on_commit, nullptr);
  sqlite3_trace_v2(connection, SQLITE_TRACE_PROFILE, on_statement_end, connection);
  return SQLITE_OK;
}

const bool installed = [] {
  const char* when = std::getenv("HAPAX_KILL");
  if (!when) return false;
  if (std::strncmp(when, "before:", 7) == 0) kill_before = std::atol(when + 7);
  if (std::strncmp(when, "after:", 6) == 0) kill_after = std::atol(when + 6);
  return sqlite3_auto_extension(reinterpret_cast<void (*)()>(install)) == SQLITE_OK;
}();

}  // namespace
