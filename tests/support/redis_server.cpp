#include "support/redis_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <thread>

namespace hapax {

namespace {

// -1 if nothing listens there.
int connect_to(const std::string& path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, path.c_str(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(socket, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0) return socket;
  close(socket);
  return -1;
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> arguments) : arguments_(std::move(arguments)) { start(); }

RedisServer::~RedisServer() { kill(); }

RedisAddress RedisServer::address() const {
  RedisAddress address;
  address.socket = dir_.file("redis.sock");
  return address;
}

void RedisServer::start() {
  std::vector<std::string> words{
      "redis-server", "--port",       "0",  "--unixsocket", address().socket, "--save", "", "--dir",
      dir_.path(),    "--appendonly", "no", "--logfile",    dir_.file("log")};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const int failure = posix_spawnp(&pid_, "redis-server", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) {
    pid_ = -1;
    throw std::runtime_error("redis-server cannot be started; install Debian's package redis-server");
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (command({"PING"}).empty()) {
    if (std::chrono::steady_clock::now() > end) {
      kill();
      throw std::runtime_error("redis-server does not answer");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void RedisServer::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  unlink(address().socket.c_str());
}

void RedisServer::pause() {
  ::kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void RedisServer::resume() { ::kill(pid_, SIGCONT); }

std::string RedisServer::command(const std::vector<std::string>& words) const {
  const int socket = connect_to(address().socket);
  if (socket < 0) return "";
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  std::string answer;
  if (send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char byte = 0;
    while (read(socket, &byte, 1) == 1 && byte != '\r') answer += byte;
  }
  close(socket);
  return answer;
}

}  // namespace hapax
