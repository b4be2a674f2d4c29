#include "store/postgres/connection/addresses.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace hapax::postgres {

std::vector<std::string> addresses_of(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::find(addresses.begin(), addresses.end(), text) == addresses.end()) addresses.emplace_back(text);
  }
  return addresses;
}

std::vector<std::string> by_address(const std::string& host, const Resolve& resolve) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(host.c_str(), nullptr),
                                                                             &PQconninfoFree);
  std::string name;
  bool has_address = std::getenv("PGHOSTADDR") != nullptr;
  for (const PQconninfoOption* option = options.get(); option && option->keyword; ++option) {
    if (!option->val) continue;
    if (std::string_view(option->keyword) == "host") name = option->val;
    if (std::string_view(option->keyword) == "hostaddr") has_address = true;
  }
  const bool is_socket = name.starts_with('/') || name.starts_with('@');
  if (name.empty() || is_socket || has_address) return {host};
  std::vector<std::string> each;
  for (const std::string& address : resolve(name)) each.push_back(host + " hostaddr='" + address + "'");
  return each.empty() ? std::vector{host} : each;
}

}  // namespace hapax::postgres
