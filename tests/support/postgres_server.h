// A real PostgreSQL of the test's own: the newest that is installed, on a free port, in a directory that ends with it.
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
    memory,  // fast, nothing survives a crash: where it is not durability that is tested
    real     // as in production
  };

  // Starts it, in a few seconds, and waits until it answers. As root it runs as the user `postgres`, because it refuses
  // root.
  explicit PostgresServer(Disk disk = Disk::memory);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // The one that the tests of this process share.
  static PostgresServer& shared();

  std::uint16_t port() const { return port_; }

  // A database that nobody else uses, and its URL.
  std::string create_database();
  void drop_database(const std::string& url);

  // The same database through a PgBouncer, which hands out server connections for one transaction each.
  std::string pooled(const std::string& url);

  // Ends it as a machine that fails does, or after a checkpoint; and starts it again on the same port and data.
  void stop(bool immediately);
  void start();

  // Its processes stop where they are, as if the machine had, and go on again.
  void freeze() { signal_all(SIGSTOP); }
  void thaw() { signal_all(SIGCONT); }

  // With pg_dump; and with pg_restore into the same database, in place of what is there.
  void dump(const std::string& url, const std::string& file);
  void restore(const std::string& url, const std::string& file);

  // Runs SQL in that database, and gives the first value of what it answers.
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
