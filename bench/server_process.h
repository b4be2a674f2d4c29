// A separate `hapax serve`, ended by its pid.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hapax::bench {

class ServerProcess {
 public:
  // Returns when it listens.
  ServerProcess(const std::string& binary, const std::string& store);
  ~ServerProcess();

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  double resident_mb() const;
  double cpu_seconds() const;

 private:
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace hapax::bench
