// Where the server listens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hapax {

struct ListenAddress {
  std::string host = "127.0.0.1";  // an IPv4 or IPv6 address, the latter without brackets
  std::uint16_t port = 7373;       // 0: any free one

  bool operator==(const ListenAddress&) const = default;

  bool is_loopback() const;
};

// "127.0.0.1:7373", "[::1]:7373", "localhost:0"; for anything else a sentence that says what is wrong.
std::variant<ListenAddress, std::string> parse_listen(std::string_view text);

}  // namespace hapax
