// The host names that the server answers to. A page in a browser may point the name of its own site at this machine
// (DNS rebinding) and then send requests here as if to its own site. But it cannot change the name in the Host header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hapax::http {

class Hosts {
 public:
  // Besides "localhost" and every IP address, which no name server can redirect. "*" stands for all names.
  explicit Hosts(const std::vector<std::string>& names);

  // `host` as in the request: possibly with a port, in any case.
  bool accept(std::string_view host) const;

 private:
  std::vector<std::string> names_;  // in lower case
  bool all_ = false;
};

}  // namespace hapax::http
