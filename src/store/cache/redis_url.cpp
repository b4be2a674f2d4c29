#include "store/cache/redis_url.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace hapax {

namespace {

constexpr std::string_view kForm = "write redis://HOST:6379, redis://:PASSWORD@HOST:6379/0 or unix:/path/to/redis.sock";

[[noreturn]] void refuse(std::string_view why) { throw BadRedisUrl(fmt::format("{}; {}", why, kForm)); }

template <class Number>
Number number(std::string_view text, std::string_view what) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < 0) {
    refuse(fmt::format("the {} is no number", what));
  }
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) refuse("a % in user or password is written %25");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// Removes the part after the last such character from the text and returns it; nothing if there is none.
std::optional<std::string_view> take_behind(std::string_view& text, char separator) {
  const auto at = text.rfind(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

void read_user(std::string_view user_info, RedisAddress& address) {
  const auto colon = user_info.find(':');
  if (colon == std::string_view::npos) refuse("what stands before the @ is USER:PASSWORD or :PASSWORD");
  address.user = percent_decoded(user_info.substr(0, colon));
  address.password = percent_decoded(user_info.substr(colon + 1));
  if (address.password.empty()) refuse("the password before the @ is empty");
}

void read_host(std::string_view host, RedisAddress& address) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    if (end == std::string_view::npos) refuse("an IPv6 address ends with ]");
    address.host = host.substr(1, end - 1);
    host = host.substr(end + 1);
    if (!host.empty() && host.front() != ':') refuse("behind the ] comes the port");
  } else {
    address.host = host.substr(0, host.find(':'));
    host = host.substr(address.host.size());
  }
  if (address.host.empty()) refuse("the host is missing");
  if (!host.empty()) address.port = number<std::uint16_t>(host.substr(1), "port");
}

}  // namespace

std::string RedisAddress::name() const {
  if (host.empty()) return "unix:" + socket;
  const bool ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(ipv6 ? "redis://[{}]:{}" : "redis://{}:{}"), host, port);
}

RedisAddress parse_redis_url(std::string_view url) {
  RedisAddress address;
  if (url.starts_with("unix:")) {
    address.socket = url.substr(5);
    if (!address.socket.starts_with('/')) refuse("the path of a socket starts with /");
    return address;
  }
  if (url.starts_with("rediss://")) refuse("Redis over TLS is not supported");
  constexpr std::string_view kScheme = "redis://";
  if (!url.starts_with(kScheme)) refuse("this is no Redis address");
  std::string_view rest = url.substr(kScheme.size());
  if (rest.find_first_of("?#") != std::string_view::npos)
    refuse("? and # have no meaning here; in a password write %3F and %23");

  std::string_view host = rest;
  if (auto behind = take_behind(host, '@')) {
    read_user(host, address);
    host = *behind;
  }
  if (const auto slash = host.find('/'); slash != std::string_view::npos) {
    const std::string_view database = host.substr(slash + 1);
    if (!database.empty()) address.database = number<std::int32_t>(database, "database");
    host = host.substr(0, slash);
  }
  read_host(host, address);
  return address;
}

}  // namespace hapax
