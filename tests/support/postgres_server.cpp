#include "support/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hapax {

namespace {

namespace fs = std::filesystem;

fs::path newest_programs() {
  fs::path newest;
  int version = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const int found = std::atoi(entry.path().filename().c_str());
    if (found > version && fs::exists(entry.path() / "bin" / "initdb")) {
      version = found;
      newest = entry.path() / "bin";
    }
  }
  if (version == 0) throw std::runtime_error("there is no PostgreSQL in /usr/lib/postgresql: install postgresql");
  return newest;
}

const passwd* unprivileged() {
  if (geteuid() != 0) return nullptr;
  const passwd* user = getpwnam("postgres");
  if (!user) throw std::runtime_error("PostgreSQL refuses to run as root, and there is no user `postgres`");
  return user;
}

// Runs a program, as `postgres` if this is root. It ends with this process.
pid_t spawn(const std::vector<std::string>& words, const std::string& log) {
  const passwd* user = unprivileged();
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return pid;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(out, 1);
  dup2(out, 2);
  if (user && (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
  prctl(PR_SET_PDEATHSIG, SIGINT);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void run_program(const std::vector<std::string>& words, const std::string& log) {
  const pid_t pid = spawn(words, log);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error(words.front() + " failed: " + text_of(log));
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bind(socket, reinterpret_cast<sockaddr*>(&address), length);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  close(socket);
  return ntohs(address.sin_port);
}

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

}  // namespace

PostgresServer::PostgresServer(Disk disk)
    : dir_(disk == Disk::memory ? TempDir::in_memory_if_possible() : TempDir()), disk_(disk) {
  if (const passwd* user = unprivileged()) {
    if (chown(dir_.path().c_str(), user->pw_uid, user->pw_gid) != 0) throw std::runtime_error("chown failed");
  }
  run_program({newest_programs() / "initdb", "-D", dir_.file("data"), "-U", "postgres", "-A", "trust", "-E", "UTF8",
               "--locale=C", "--no-sync", "--no-instructions"},
              dir_.file("initdb.log"));
  port_ = free_port();
  start();
}

PostgresServer::~PostgresServer() {
  if (pooler_pid_ > 0) {
    kill(pooler_pid_, SIGKILL);
    waitpid(pooler_pid_, nullptr, 0);
  }
  stop(true);
}

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

void PostgresServer::start() {
  std::vector<std::string> words{
      newest_programs() / "postgres", "-D", dir_.file("data"),    "-p", std::to_string(port_), "-k", "", "-c",
      "listen_addresses=127.0.0.1",   "-c", "max_connections=200"};
  if (disk_ == Disk::memory) {
    for (const char* setting : {"fsync=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=64MB"}) {
      words.insert(words.end(), {"-c", setting});
    }
  }
  pid_ = spawn(words, dir_.file("postgres.log"));
  wait_until_ready();
}

void PostgresServer::wait_until_ready() {
  for (int tries = 0; tries < 600; ++tries) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error("PostgreSQL ended: " + text_of(dir_.file("postgres.log")));
    }
    if (PQping(url_of("postgres").c_str()) == PQPING_OK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw std::runtime_error("PostgreSQL did not start within 30 s: " + text_of(dir_.file("postgres.log")));
}

void PostgresServer::start_pooler() {
  constexpr const char* kPooler = "/usr/sbin/pgbouncer";
  if (!fs::exists(kPooler)) throw std::runtime_error("there is no /usr/sbin/pgbouncer: install pgbouncer");
  pooler_port_ = free_port();
  std::ofstream(dir_.file("users")) << "\"postgres\" \"\"\n";
  std::ofstream(dir_.file("pgbouncer.ini"))
      << "[databases]\n* = host=127.0.0.1 port=" << port_
      << "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << pooler_port_
      << "\nunix_socket_dir =\nauth_type = trust\nauth_file = " << dir_.file("users")
      << "\npool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 10\n";
  pooler_pid_ = spawn({kPooler, dir_.file("pgbouncer.ini")}, dir_.file("pgbouncer.log"));
  const std::string url = "postgres://postgres@127.0.0.1:" + std::to_string(pooler_port_) + "/postgres";
  for (int tries = 0; tries < 200; ++tries) {
    if (PQping(url.c_str()) == PQPING_OK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw std::runtime_error("PgBouncer did not start within 10 s: " + text_of(dir_.file("pgbouncer.log")));
}

std::string PostgresServer::pooled(const std::string& url) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (pooler_pid_ < 0) start_pooler();
  return "postgres://postgres@127.0.0.1:" + std::to_string(pooler_port_) + url.substr(url.rfind('/')) +
         "?hapax_pooled=1";
}

void PostgresServer::stop(bool immediately) {
  if (pid_ < 0) return;
  thaw();
  kill(pid_, immediately ? SIGQUIT : SIGINT);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

// The postmaster last; otherwise it would restart the others.
void PostgresServer::signal_all(int signal) {
  const std::string pid = std::to_string(pid_);
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  if (signal == SIGSTOP) kill(pid_, signal);
  for (pid_t child = 0; children >> child;) kill(child, signal);
  if (signal != SIGSTOP) kill(pid_, signal);
}

void PostgresServer::dump(const std::string& url, const std::string& file) {
  run_program({newest_programs() / "pg_dump", "-Fc", "-f", file, url}, dir_.file("dump.log"));
}

void PostgresServer::restore(const std::string& url, const std::string& file) {
  run_program({newest_programs() / "pg_restore", "--clean", "--if-exists", "-d", url, file}, dir_.file("restore.log"));
}

std::string PostgresServer::url_of(const std::string& database) const {
  return "postgres://postgres@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string PostgresServer::create_database() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string name = "hapax_" + std::to_string(++databases_);
  run(url_of("postgres"), "CREATE DATABASE " + name);
  return url_of(name);
}

void PostgresServer::drop_database(const std::string& url) {
  run(url_of("postgres"), "DROP DATABASE " + url.substr(url.rfind('/') + 1) + " WITH (FORCE)");
}

std::string PostgresServer::run(const std::string& url, const std::string& sql) {
  const Connection connection(PQconnectdb(url.c_str()), &PQfinish);
  const Result result(PQexec(connection.get(), sql.c_str()), &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw std::runtime_error(sql + ": " + PQerrorMessage(connection.get()));
  }
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

}  // namespace hapax
