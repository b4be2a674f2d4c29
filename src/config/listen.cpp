#include "config/listen.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace hapax {

namespace {

bool is_address(int family, const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(family, host.c_str(), bytes) == 1;
}

}  // namespace

bool ListenAddress::is_loopback() const { return host.starts_with("127.") || host == "::1"; }

std::variant<ListenAddress, std::string> parse_listen(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fmt::format("\"{}\" is not an address to listen on: {}; write e.g. \"127.0.0.1:7373\" or \"[::1]:7373\"",
                       text, why);
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("the port is missing");

  ListenAddress address;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || failure != std::errc() || end != port.data() + port.size()) {
    return wrong("the port must be a number from 0 to 65535");
  }

  address.host = text.substr(0, colon);
  if (address.host.empty()) return wrong("the host is missing (all interfaces are \"0.0.0.0\" or \"[::]\")");
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
    if (!is_address(AF_INET6, address.host)) return wrong("the text in brackets is not an IPv6 address");
  } else if (!is_address(AF_INET, address.host)) {
    return wrong("the host must be an IP address (IPv6 in brackets) or localhost");
  }
  return address;
}

}  // namespace hapax
