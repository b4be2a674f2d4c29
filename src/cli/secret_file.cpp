#include "cli/secret_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <string_view>

#include "cli/command.h"
#include "core/secret.h"

namespace hapax {

std::string read_secret_file(const std::string& flag, const std::string& path) {
  std::ifstream file(path);
  if (!file) throw CommandError(kUsage, fmt::format("{}: {} cannot be read: {}", flag, path, std::strerror(errno)));
  std::string line;
  std::getline(file, line);
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string::npos) {
    throw CommandError(kUsage, fmt::format("{}: the first line of {} is empty", flag, path));
  }
  return line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
}

void hide_arguments(int argc, char** argv) {
  constexpr std::string_view kToken = "--token", kHidden = "***";
  bool is_token = false;  // this one, because the flag before it says so
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    std::string shown = without_secrets(argument);
    if (is_token) shown = kHidden;
    if (argument.starts_with("--token=")) shown = std::string(kToken) + "=" + std::string(kHidden);
    is_token = argument == kToken;
    if (shown == argument) continue;
    // In place, and never longer than the original.
    std::memset(argv[i], 0, argument.size());
    std::memcpy(argv[i], shown.data(), std::min(shown.size(), argument.size()));
  }
}

void hide_environment() {
  for (char** variable = environ; variable && *variable; ++variable) {
    char* copy = strdup(*variable);
    if (!copy) throw std::bad_alloc();
    std::memset(*variable, 0, std::strlen(*variable));
    *variable = copy;
  }
}

}  // namespace hapax
