// Whether this process may use SQLite. A child that is forked while SQLite is in use inherits SQLite's locks as they
// were, held by threads that it does not have, and SQLite's records of file locks, which it does not have either.
#pragma once

#include <string>
#include <utility>

namespace hapax::capi {

// Throws Failure::misuse for a sqlite: URL if the parent had one open at the fork.
void refuse_inherited_sqlite(const std::string& url);

// Notes that a sqlite: URL is open, as long as it lives. Other URLs do not count.
class OpenSqlite {
 public:
  explicit OpenSqlite(const std::string& url);
  ~OpenSqlite();
  OpenSqlite(const OpenSqlite&) = delete;
  OpenSqlite& operator=(const OpenSqlite&) = delete;

 private:
  const bool counts_;
};

}  // namespace hapax::capi
