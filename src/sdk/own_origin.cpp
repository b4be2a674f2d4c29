#include "sdk/own_origin.h"

#include <unistd.h>

#include <utility>

namespace hapax::detail {

namespace {

std::string own_host() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return host;
}

}  // namespace

WorkerOrigin own_origin(std::string sdk) {
  return {.sdk = std::move(sdk), .version = HAPAX_VERSION, .host = own_host(), .pid = getpid()};
}

std::string own_name() { return own_host() + "/" + std::to_string(getpid()); }

}  // namespace hapax::detail
