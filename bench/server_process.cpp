#include "server_process.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hapax::bench {

namespace {

// The port in "listening on http://127.0.0.1:PORT", the first line that a server prints.
std::uint16_t read_port(int fd) {
  FILE* out = fdopen(fd, "r");
  char line[256];
  while (std::fgets(line, sizeof line, out)) {
    const std::string text(line);
    const auto place = text.find("http://127.0.0.1:");
    if (place != std::string::npos) return static_cast<std::uint16_t>(std::stoi(text.substr(place + 17)));
  }
  throw std::runtime_error("the server did not start");
}

}  // namespace

ServerProcess::ServerProcess(const std::string& binary, const std::string& store) {
  int out[2];
  if (pipe(out) != 0) throw std::runtime_error("pipe failed");
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    execl(binary.c_str(), binary.c_str(), "serve", "--listen", "127.0.0.1:0", "--store", store.c_str(), "--log-level",
          "warn", nullptr);
    _exit(127);
  }
  close(out[1]);
  port_ = read_port(out[0]);
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

double ServerProcess::resident_mb() const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  throw std::runtime_error("the server has ended");
}

double ServerProcess::cpu_seconds() const {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 0; i < 11; ++i) fields >> field;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace hapax::bench
