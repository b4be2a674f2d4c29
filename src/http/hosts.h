// The host names that the server answers to. A page in a browser may have the name of its own site point to this
// machine (DNS rebinding) and then send requests here as if to its own site; but it cannot change the name in the Host
// header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hapax::http {

class Hosts {
 public:
  // Beside "localhost" and every IP address, which no name server can point elsewhere. "*" stands for all names.
  explicit Hosts(const std::vector<std::string>& names);

  // `host` as a request has it: perhaps with a port, in any case.
  bool accept(std::string_view host) const;

 private:
  std::vector<std::string> names_;  // in lower case
  bool all_ = false;
};

}  // namespace hapax::http
