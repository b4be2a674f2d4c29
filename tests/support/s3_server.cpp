#include "support/s3_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "store/s3/client/s3_wire.h"

namespace hapax {

namespace {

constexpr const char* kAccessKey = "testaccess";
constexpr const char* kSecretKey = "testsecret12345";
constexpr const char* kBucket = "hapax";

struct Reserved {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;

  Reserved() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    bind(socket, reinterpret_cast<sockaddr*>(&address), length);
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(address.sin_port);
  }
  ~Reserved() { close(socket); }
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

S3Server::S3Server() {
  setenv("AWS_ACCESS_KEY_ID", kAccessKey, 1);
  setenv("AWS_SECRET_ACCESS_KEY", kSecretKey, 1);
  constexpr int kTries = 3;  // another process may have taken one of the ports
  for (int i = 0; i < kTries; ++i) {
    if (start()) return;
    stop();
  }
  throw std::runtime_error("the S3 server does not start: " + text_of(dir_.file("errors")));
}

S3Server::~S3Server() { stop(); }

S3Server& S3Server::shared() {
  static S3Server server;
  return server;
}

bool S3Server::start() {
  std::uint16_t mon_port = 0;
  {
    const Reserved first, second, third;
    port_ = first.port;
    mon_port = second.port;
    tls_port_ = third.port;
  }
  int input[2], output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("no pipes are left");
  std::vector<std::string> variables{"S3_DIR=" + dir_.file("s3"),
                                     "S3_PORT=" + std::to_string(port_),
                                     "S3_MON_PORT=" + std::to_string(mon_port),
                                     "S3_TLS_PORT=" + std::to_string(tls_port_),
                                     "S3_ACCESS_KEY=" + std::string(kAccessKey),
                                     "S3_SECRET_KEY=" + std::string(kSecretKey)};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  std::string program = HAPAX_CEPH_RGW, verb = "run";
  char* arguments[] = {program.data(), verb.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, dir_.file("errors").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0644);
  const int failure = posix_spawn(&pid_, program.c_str(), &files, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&files);
  close(input[0]);
  close(output[1]);
  input_ = input[1];
  if (failure != 0) pid_ = -1;
  char first = 0;
  const bool answers = failure == 0 && read(output[0], &first, 1) == 1;  // its one line, or its end
  close(output[0]);
  return answers;
}

void S3Server::stop() {
  if (input_ >= 0) close(input_);
  input_ = -1;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

S3Address S3Server::fresh_address(std::uint16_t proxy_port) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  S3Address address;
  address.endpoint = "http://127.0.0.1:" + std::to_string(port_);
  address.bucket = kBucket;
  address.region = "us-east-1";
  address.path_style = true;
  address.credentials = {kAccessKey, kSecretKey, ""};
  if (!has_bucket_) {
    const S3Answer answer = S3Wire(address).ask({.verb = S3Request::Verb::put});
    if (!answer.ok()) throw std::runtime_error("cannot make a bucket: " + answer.code + " " + answer.message);
    has_bucket_ = true;
  }
  address.prefix = "test-" + std::to_string(++prefixes_) + "/";
  if (proxy_port != 0) address.endpoint = "http://127.0.0.1:" + std::to_string(proxy_port);
  return address;
}

std::string S3Server::url_of(const S3Address& address) { return address.name() + "?endpoint=" + address.endpoint; }

}  // namespace hapax
