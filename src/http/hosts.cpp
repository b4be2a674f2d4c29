#include "http/hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

namespace hapax::http {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool is_address(int family, const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(family, text.c_str(), bytes) == 1;
}

bool is_port(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

Hosts::Hosts(const std::vector<std::string>& names) : names_{"localhost"} {
  for (const std::string& name : names) {
    all_ = all_ || name == "*";
    names_.push_back(lower(name));
  }
}

bool Hosts::accept(std::string_view host) const {
  if (all_) return true;
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view rest = host.substr(end + 1);
    return is_address(AF_INET6, std::string(host.substr(1, end - 1))) &&
           (rest.empty() || (rest.starts_with(':') && is_port(rest.substr(1))));
  }
  if (const auto colon = host.find(':'); colon != std::string_view::npos) {
    if (!is_port(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);  // the DNS root
  const std::string name = lower(host);
  return std::find(names_.begin(), names_.end(), name) != names_.end() || is_address(AF_INET, name);
}

}  // namespace hapax::http
