// The test's own real PostgreSQL: the newest installed, on a free port, in a directory that ends with it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "support/temp_dir.h"

namespace hapax {

class PostgresServer {
 public:
  enum class Disk {
    memory,  // fast, loses everything in a crash: for tests that are not about durability
    real     // as in production
  };

  // Starts it within a few seconds and waits until it answers. As root it runs as the user `postgres`, because it
  // refuses root.
  explicit PostgresServer(Disk disk = Disk::memory);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // The one that all tests of this process share.
  static PostgresServer& shared();

  std::uint16_t port() const { return port_; }

  // A new database, and its URL.
  std::string create_database();
  void drop_database(const std::string& url);

  // The same database through a PgBouncer, which hands out server connections for one transaction each.
  std::string pooled(const std::string& url);

  // Ends it as after a power failure, or after a checkpoint; and starts it again on the same port and data.
  void stop(bool immediately);
  void start();

  // Stops its processes where they are, as if the machine had stopped, and continues them.
  void freeze() { signal_all(SIGSTOP); }
  void thaw() { signal_all(SIGCONT); }

  // With pg_dump; and with pg_restore into the same database, replacing its content.
  void dump(const std::string& url, const std::string& file);
  void restore(const std::string& url, const std::string& file);

  // Runs SQL in that database and returns the first value.
  std::string run(const std::string& url, const std::string& sql);

 private:
  std::string url_of(const std::string& database) const;
  void wait_until_ready();
  void signal_all(int signal);
  void start_pooler();

  TempDir dir_;
  const Disk disk_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  std::uint16_t pooler_port_ = 0;
  pid_t pooler_pid_ = -1;
  int databases_ = 0;
};

}  // namespace hapax
