#include "cli/handler_environment.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

namespace hapax {

namespace {

constexpr auto kPassedOn = std::to_array<std::string_view>(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR"});

bool is_passed_on(std::string_view name) {
  return name.starts_with("LC_") || std::find(kPassedOn.begin(), kPassedOn.end(), name) != kPassedOn.end();
}

}  // namespace

Variables handler_environment(const Variables& own, const std::vector<std::string>& more) {
  Variables variables;
  for (const auto& [name, value] : own) {
    if (is_passed_on(name)) variables.emplace(name, value);
  }
  for (const std::string& asked : more) {
    const std::size_t end = asked.find('=');
    const std::string name = asked.substr(0, end);
    if (name.empty()) throw std::invalid_argument("\"" + asked + "\" names no variable: it is NAME or NAME=VALUE");
    if (end != std::string::npos) {
      variables.insert_or_assign(name, asked.substr(end + 1));
    } else if (const auto found = own.find(name); found != own.end()) {
      variables.insert_or_assign(name, found->second);
    }
  }
  return variables;
}

}  // namespace hapax
